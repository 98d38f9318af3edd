// Elements.
// Names come from traces, so text always goes in as text nodes and never as markup.

function fillElement(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

const html = (tag, attributes = {}, ...children) =>
  fillElement(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fillElement(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const byId = (id) => document.getElementById(id);
