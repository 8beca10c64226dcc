// SPDX-License-Identifier: Apache-2.0
// Bundles src/ and uPlot into dist/mase.js and dist/mase.css, which CMake embeds into libmase.
// The first line of each holds a digest of the sources, so that a test sees a stale bundle.
import {createHash} from 'node:crypto';
import {readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {build} from 'esbuild';

const digest = createHash('sha256');
for (const name of readdirSync('src').sort()) digest.update(name + '\0').update(readFileSync('src/' + name));
const banner = `/* mase pages, sources ${digest.digest('hex')}; with uPlot 1.6.32 (MIT), see LICENSES.txt */`;

await build({
  entryPoints: ['src/main.js'],
  outfile: 'dist/mase.js',
  bundle: true,
  minify: true,
  format: 'iife',
  target: ['es2020'],
  charset: 'ascii',
  legalComments: 'none',
  banner: {js: banner, css: banner},
});
writeFileSync('dist/LICENSES.txt',
  'mase.js and mase.css contain, besides the sources in web/src (Apache-2.0):\n\n' +
  'uPlot 1.6.32\n\n' + readFileSync('node_modules/uplot/LICENSE', 'utf8'));
