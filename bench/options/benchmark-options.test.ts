import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { readSources } from '../../scripts/test-division.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
/** It reads its options itself. */
const others = ['bench/api.ts']

test('every benchmark reads its options from a table, so that it has help and refuses what it cannot use', async (t) => {
  const sources = readSources(root)
  const imported = new Set([...sources.values()].flatMap(({ imports }) => imports.map(({ to }) => to)))
  const isProgram = (path: string) => path.startsWith('bench/') && !path.endsWith('.test.ts') && !imported.has(path)
  const programs = [...sources.keys()].filter(isProgram)
  t.ok(programs.length > 30, `${programs.length} programs`)
  const reads = (path: string) => /\b(?:benchmarkOptions|readArguments)\(/.test(readFileSync(join(root, path), 'utf8'))
  t.same(
    programs.filter((path) => !reads(path) && !others.includes(path)),
    [],
  )
})

test('a benchmark prints its help, and does not start with options that are wrong', async (t) => {
  const help = run('--help')
  t.equal(help.status, 0)
  t.match(help.stdout, /^Usage: node dist\/bench\/network\/address-probes\.js \[options\]\n/)
  t.match(help.stdout, 'number of probes')
  t.equal(help.stderr, '')
  for (const [option, why] of [
    ['--probes=x', 'Invalid value "x" for --probes: use a whole number from 1 to 1000000.'],
    ['--prob=1', "Unknown option '--prob'."],
    ['100', 'Unexpected "100".'],
  ] as const) {
    const { status, stdout, stderr } = run(option)
    t.equal(status, 64, option)
    t.equal(stderr, `${why}\nTry 'node dist/bench/network/address-probes.js --help'.\n`)
    t.equal(stdout, '')
  }
})

function run(option: string) {
  const program = join(root, 'dist/bench/network/address-probes.js')
  return spawnSync(process.execPath, [program, option], { encoding: 'utf8', timeout: 60_000 })
}
