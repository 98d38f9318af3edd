import { Dialog } from './bits';

export function Help({ pages, close }: { pages: { name: string; key: string }[]; close: () => void }) {
  const keys: [string, string][] = [
    ['/', 'Search jobs'],
    ...pages.map((page): [string, string] => [`g ${page.key}`, page.name]),
    ['↑ ↓', 'Move in a table or the device map'],
    ['Enter', 'Open'],
    ['x', 'Select the job, to cancel several'],
    ['Esc', 'Leave a field, close a dialog'],
    ['?', 'This list'],
  ];
  return (
    <Dialog title="Keys" close={close}>
      <dl class="keys">{keys.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl>
      <div class="dialog-end"><button type="button" onClick={close}>Close</button></div>
    </Dialog>
  );
}
