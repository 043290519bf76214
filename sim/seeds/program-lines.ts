/** Which lines of the programs ran, read from their compiled files and source maps. */
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { linesRun, linesText, type ScriptCoverage } from '../story/lines-run.ts'

const compiled = fileURLToPath(new URL('../..', import.meta.url))

/** A text about the files below this folder of the repository that were loaded. */
export function linesOf(folder: string, processes: readonly (readonly ScriptCoverage[])[]): readonly string[] {
  const maps = new Map<string, SourceMap>()
  const mapOf = (url: string) => {
    const known = maps.get(url) ?? new SourceMap(JSON.parse(read(`${url}.map`)))
    maps.set(url, known)
    return known
  }
  const nameOf = (url: string) => relative(compiled, fileURLToPath(url)).replace(/\.js$/, '.ts')
  const files = linesRun(processes, (url) => nameOf(url).startsWith(folder), {
    textOf: read,
    sourceLineOf(url, line, column) {
      const entry = mapOf(url).findEntry(line, column)
      return 'originalLine' in entry ? entry.originalLine + 1 : undefined
    },
  })
  return linesText(files, nameOf)
}

function read(url: string): string {
  return readFileSync(fileURLToPath(url), 'utf8')
}
