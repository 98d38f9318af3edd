// Draws everything, top to bottom.

document.documentElement.dataset.theme = firstTheme();
drawHeader();
drawLegend();
for (const draw of [
  drawSummary,
  drawDistribution,
  drawTimeline,
  drawPrices,
  drawFollowed,
  drawSizes,
  drawGantt,
  drawLongest,
  drawFooter,
])
  draw();
watchWindow();
