/**
 * Builds the page of the dashboard into a folder: scripts and styles with a hash of their content in their names, and each file
 * compressed beside itself. The terminal is a script of its own, which the page loads when a shell is opened.
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import { build } from 'esbuild'

const compress = promisify(gzip)
const source = 'dashboard/browser'

/** What all files together weigh, as they are downloaded. */
export type DashboardSize = { readonly files: number; readonly bytes: number }

/** `root`: of the repository. What was in `folder` is removed. Rejects where the sources have errors. */
export async function buildDashboard(root: string, folder: string): Promise<DashboardSize> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [join(source, 'main.tsx'), join(source, 'style.css')],
    outdir: folder,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    // The first with light-dark(): https://developer.mozilla.org/docs/Web/CSS/color_value/light-dark
    target: ['chrome123', 'firefox120', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    minify: true,
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const entry = (name: string) => {
    const found = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === join(source, name))
    if (found === undefined) throw new Error(`${name} was not built`)
    return basename(found[0])
  }
  const icon = await readFile(join(root, source, 'icon.svg'))
  const iconName = `icon-${createHash('sha256').update(icon).digest('hex').slice(0, 8)}.svg`
  const index = (await readFile(join(root, source, 'index.html'), 'utf8'))
    .replace('ICON', iconName)
    .replace('STYLE', entry('style.css'))
    .replace('SCRIPT', entry('main.tsx'))
  const files: readonly (readonly [string, Uint8Array])[] = [
    ...outputFiles.map(({ path, contents }) => [basename(path), contents] as const),
    [iconName, icon],
    ['index.html', Buffer.from(index)],
  ]
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  let bytes = 0
  for (const [name, contents] of files) {
    const zipped = await compress(contents, { level: constants.Z_BEST_COMPRESSION })
    bytes += zipped.length
    await writeFile(join(folder, name), contents)
    await writeFile(join(folder, `${name}.gz`), zipped)
  }
  return { files: files.length, bytes }
}
