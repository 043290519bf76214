/**
 * Divides the tests into those that start other programs and those that need Node.js alone, by their imports, so that no list has
 * to be kept: a test is on real parts if it, or a helper of tests that it imports, starts processes or names a part that may be
 * missing.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

export type TestDivision = { readonly unit: readonly string[]; readonly real: readonly string[] }

/** Path of a source file, from the repository's root → what it imports: such paths, or names of packages. */
export type SourceImports = ReadonlyMap<string, readonly SourceImport[]>
export type SourceImport = { readonly to: string; readonly typesOnly: boolean }

const folders = ['api', 'daemon', 'certs', 'agent', 'broker-controller', 'scripts', 'bench', 'test']
const starts = /^node:child_process$|^test\/support\/missing-parts\.ts$/

/** What `text`, the source of the file `from`, imports, exports from elsewhere or imports later. */
export function importsOf(from: string, text: string): readonly SourceImport[] {
  const statements = text.matchAll(
    /^(?:import|export(?=\s(?:type\s)?[{*]))\s(type\s)?(?:[^'"=]*?\sfrom\s)?'([^'\n]+)'|\bimport\('([^']+)'\)/gm,
  )
  return [...statements].map(([, types, named = '', lazy]) => ({
    to: pathOf(from, lazy ?? named),
    typesOnly: types !== undefined,
  }))
}

/** The imports of every source file below `root`. */
export function readImports(root: string): SourceImports {
  const paths = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder, name))
      .filter((path) => path.endsWith('.ts') && !path.includes('node_modules')),
  )
  return new Map(paths.map((path) => [path, importsOf(path, readFileSync(join(root, path), 'utf8'))]))
}

/** Every test once, in the order of `imports`. */
export function divideTests(imports: SourceImports): TestDivision {
  const tests = [...imports.keys()].filter((path) => path.endsWith('.test.ts'))
  const real = new Set(tests.filter((path) => isOnRealParts(path, imports)))
  return { unit: tests.filter((path) => !real.has(path)), real: tests.filter((path) => real.has(path)) }
}

/** Imports of the programs themselves are not followed: what the agent can start, a test of one of its parts does not. */
function isOnRealParts(path: string, imports: SourceImports, seen = new Set<string>()): boolean {
  if (seen.has(path)) return false
  seen.add(path)
  return (imports.get(path) ?? []).some(
    ({ to, typesOnly }) => !typesOnly && (starts.test(to) || (isForTests(to) && isOnRealParts(to, imports, seen))),
  )
}

function isForTests(path: string): boolean {
  return /\.test\.ts$|\/testing\/|^(test|bench)\//.test(path)
}

function pathOf(from: string, name: string): string {
  return name.startsWith('.') ? normalize(join(dirname(from), name)) : name
}
