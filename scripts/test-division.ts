/**
 * Divides the tests into those that start other programs and those that need Node.js alone, by their sources, so that no list has
 * to be kept: a test is on real parts if it, or a helper of tests that it imports, starts processes or names a part that may be
 * missing. Of the others, those that change or measure what a process has once need one of their own.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** Paths from the repository's root. `alone` are those of `unit` that cannot share a process with other tests. */
export type TestDivision = {
  readonly unit: readonly string[]
  readonly real: readonly string[]
  readonly alone: ReadonlySet<string>
}

/** Path of a source file, from the repository's root → what decides where a test that uses it can run. */
export type Sources = ReadonlyMap<string, Source>
export type Source = { readonly imports: readonly SourceImport[]; readonly usesProcess: boolean }
/** `to` is a path from the repository's root, or the name of a package. */
export type SourceImport = { readonly to: string; readonly typesOnly: boolean }

const folders = ['api', 'daemon', 'certs', 'agent', 'broker-controller', 'dashboard', 'scripts', 'bench', 'sim', 'test']
const starts = /^node:child_process$|^test\/support\/missing-parts\.ts$/

/** Constants, settings with a default and what is under way can be read in a shared process. */
const ofProcess = /\bprocess\.(?!(?:arch|getActiveResourcesInfo|getuid|pid|platform|version)\b|env\['\w+'\] \?\?)/
const ofAllModules = /\b(?:globalThis|globalAgent|syncBuiltinESMExports|setFlagsFromString|setGlobalDispatcher)\b/
/** tap's outermost test: what is set there holds for each file of the process. */
const ofOutermostTest = /^(?:all|t)\.|\btap\.(?!test\b)/m

/** What decides where a test that uses the file `from` with the source `text` can run. */
export function sourceOf(from: string, text: string): Source {
  const usesProcess = [ofProcess, ofAllModules, ofOutermostTest].some((pattern) => pattern.test(text))
  return { imports: importsOf(from, text), usesProcess }
}

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

/** Every source file below `root`. */
export function readSources(root: string): Sources {
  const paths = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder, name))
      .filter((path) => path.endsWith('.ts') && !path.includes('node_modules')),
  )
  return new Map(paths.map((path) => [path, sourceOf(path, readFileSync(join(root, path), 'utf8'))]))
}

/** Every test once, in the order of `sources`. */
export function divideTests(sources: Sources): TestDivision {
  const tests = [...sources.keys()].filter((path) => path.endsWith('.test.ts'))
  const startsPrograms = ({ imports }: Source) => imports.some(({ to, typesOnly }) => !typesOnly && starts.test(to))
  const real = new Set(tests.filter((path) => isOrUses(path, sources, startsPrograms)))
  const unit = tests.filter((path) => !real.has(path))
  const alone = new Set(unit.filter((path) => isOrUses(path, sources, ({ usesProcess }) => usesProcess)))
  return { unit, real: tests.filter((path) => real.has(path)), alone }
}

/**
 * Whether `matches` is true of the test or of a helper of tests that it imports. Imports of the programs themselves are not
 * followed: what the agent can start, a test of one of its parts does not.
 */
function isOrUses(
  path: string,
  sources: Sources,
  matches: (source: Source) => boolean,
  seen = new Set<string>(),
): boolean {
  const source = sources.get(path)
  if (source === undefined || seen.has(path)) return false
  seen.add(path)
  return (
    matches(source) ||
    source.imports.some(({ to, typesOnly }) => !typesOnly && isForTests(to) && isOrUses(to, sources, matches, seen))
  )
}

function isForTests(path: string): boolean {
  return /\.test\.ts$|\/testing\/|^(test|bench|sim)\//.test(path)
}

function pathOf(from: string, name: string): string {
  return name.startsWith('.') ? normalize(join(dirname(from), name)) : name
}
