// The script of the page that `yard sim --html` writes; the binary puts it into the file, with the dashboard's style.
import { defineConfig } from 'vite';

export default defineConfig({
  publicDir: false,
  build: {
    target: 'es2022',
    modulePreload: false,
    emptyOutDir: false,
    rollupOptions: {
      input: 'src/report/main.tsx',
      output: { entryFileNames: 'assets/report.js', assetFileNames: 'assets/report[extname]', codeSplitting: false },
    },
  },
});
