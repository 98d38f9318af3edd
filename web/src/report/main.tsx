// The page that `yard sim --html` writes: this script, its style and the data, all in one file.

import { render } from 'preact';
import type { Report } from '../lib/report';
import { applyTheme } from '../lib/theme';
import { ThemeButton } from '../parts/ThemeButton';
import { Foot } from './Head';
import { ReportView } from './ReportView';

const report = JSON.parse(document.getElementById('data')!.textContent) as Report;
applyTheme();
document.title = report.title;
render(
  <main class="page report">
    <div class="page-head"><h1>{report.title}</h1><div class="chosen"><ThemeButton /></div></div>
    <ReportView report={report} />
    <Foot report={report} />
  </main>,
  document.getElementById('app')!,
);
