import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { divideTests, importsOf, readImports } from '../scripts/test-division.ts'

const sources = (files: { readonly [path: string]: string }) =>
  new Map(Object.entries(files).map(([path, text]) => [path, importsOf(path, text)]))

test('a test that starts programs is on real parts, also by a helper', async (t) => {
  const imports = sources({
    'agent/own.test.ts': `import { spawn } from 'node:child_process'`,
    'agent/later.test.ts': `  const { execFileSync } = await import('node:child_process')`,
    'agent/helped.test.ts': `import { bus } from './testing/bus.ts'`,
    'agent/testing/bus.ts': `export { run } from '../../test/support/run.ts'`,
    'test/support/run.ts': `import { execFile } from 'node:child_process'`,
    'agent/part.test.ts': `import { isRoot, skipWithout } from '../test/support/missing-parts.ts'`,
  })
  t.same(divideTests(imports).unit, [])
  t.equal(divideTests(imports).real.length, 4)
})

test('a test of a part that could start programs, or of types alone, is a unit test', async (t) => {
  const imports = sources({
    'agent/mounts.ts': `import { execFile } from 'node:child_process'`,
    'agent/mounts.test.ts': `import { mounts } from './mounts.ts'`,
    'agent/types.test.ts': `import type { Daemon } from '../test/support/dockerd.ts'`,
    'test/support/dockerd.ts': `import { spawn } from 'node:child_process'`,
    'agent/round.test.ts': `import { a } from './testing/a.ts'`,
    'agent/testing/a.ts': `import { b } from './b.ts'`,
    'agent/testing/b.ts': `import { a } from './a.ts'`,
  })
  t.same(divideTests(imports).real, [])
  t.equal(divideTests(imports).unit.length, 3)
})

test('every test of the repository belongs to one division', async (t) => {
  const imports = readImports(fileURLToPath(new URL('../..', import.meta.url)))
  const { unit, real } = divideTests(imports)
  const all = [...imports.keys()].filter((path) => path.endsWith('.test.ts'))
  t.same([...unit, ...real].sort(), all.sort())
  t.ok(unit.length > 200 && real.length > 50, `${unit.length} and ${real.length}`)
  t.ok(unit.includes('agent/pods/plan/pod-plan.test.ts'))
  t.same(
    unit.filter((path) => /on-docker|^test\/machines|kubectl|quickstart/.test(path)),
    [],
    'what is named after a real part has it',
  )
})
