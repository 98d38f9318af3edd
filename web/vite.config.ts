// The bundle is committed, so its files keep their names and hold nothing that differs from machine to machine.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  base: '/',
  // `npx vite` serves the sources against a server of this machine.
  server: { proxy: { '/v1': 'http://127.0.0.1:7411' } },
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: 'assets/app.js',
        assetFileNames: 'assets/app[extname]',
        codeSplitting: false,
      },
    },
  },
  test: { include: ['src/**/*.test.ts', 'src/**/*.test.tsx'] },
});
