import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { divideTests, readSources, sourceOf } from '../scripts/test-division.ts'

const sources = (files: { readonly [path: string]: string }) =>
  new Map(Object.entries(files).map(([path, text]) => [path, sourceOf(path, text)]))

test('a test that starts programs is on real parts, also by a helper', async (t) => {
  const read = sources({
    'agent/own.test.ts': `import { spawn } from 'node:child_process'`,
    'agent/later.test.ts': `  const { execFileSync } = await import('node:child_process')`,
    'agent/helped.test.ts': `import { bus } from './testing/bus.ts'`,
    'agent/testing/bus.ts': `export { run } from '../../test/support/run.ts'`,
    'test/support/run.ts': `import { execFile } from 'node:child_process'`,
    'agent/part.test.ts': `import { isRoot, skipWithout } from '../test/support/missing-parts.ts'`,
  })
  t.same(divideTests(read).unit, [])
  t.equal(divideTests(read).real.length, 4)
})

test('a test of a part that could start programs, or of types alone, is a unit test', async (t) => {
  const read = sources({
    'agent/mounts.ts': `import { execFile } from 'node:child_process'`,
    'agent/mounts.test.ts': `import { mounts } from './mounts.ts'`,
    'agent/types.test.ts': `import type { Daemon } from '../test/support/dockerd.ts'`,
    'test/support/dockerd.ts': `import { spawn } from 'node:child_process'`,
    'agent/round.test.ts': `import { a } from './testing/a.ts'`,
    'agent/testing/a.ts': `import { b } from './b.ts'`,
    'agent/testing/b.ts': `import { a } from './a.ts'`,
  })
  t.same(divideTests(read).real, [])
  t.equal(divideTests(read).unit.length, 3)
})

test('a test that changes or measures its process gets one of its own, also by a helper', async (t) => {
  const read = sources({
    'api/listens.test.ts': `  process.on('SIGTERM', stop)`,
    'api/measures.test.ts': `  const before = process.cpuUsage()`,
    'api/writes.test.ts': `  process.env['TZ'] = 'UTC'`,
    'api/outermost.test.ts': `t.teardown(() => close())`,
    'api/default.test.ts': `  tap.beforeEach(() => open())`,
    'api/helped.test.ts': `import { warnings } from './testing/warnings.ts'`,
    'api/testing/warnings.ts': `  process.on('warning', note)`,
  })
  t.equal(divideTests(read).alone.size, 6)
  const shared = sources({
    'api/plain.test.ts': `import tap, { type Test } from 'tap'\ntap.test(name, (t: Test) => t.equal(1, 1))`,
    'api/reads.test.ts': `  skip(process.platform, process.env['TZ'] ?? 'UTC')`,
    'api/program.test.ts': `import { run } from './program.ts'`,
    'api/program.ts': `process.on('SIGTERM', stop)`,
  })
  t.equal(divideTests(shared).unit.length, 3)
  t.same([...divideTests(shared).alone], [])
})

test('every test of the repository belongs to one division', async (t) => {
  const read = readSources(fileURLToPath(new URL('../..', import.meta.url)))
  const { unit, real, alone } = divideTests(read)
  const all = [...read.keys()].filter((path) => path.endsWith('.test.ts'))
  t.same([...unit, ...real].sort(), all.sort())
  t.ok(unit.length > 200 && real.length > 50, `${unit.length} and ${real.length}`)
  t.ok(unit.includes('agent/pods/plan/pod-plan.test.ts'))
  t.ok(alone.size < unit.length / 10, `${alone.size} of ${unit.length} need a process of their own`)
  t.same(
    unit.filter((path) => /on-docker|^test\/machines|kubectl|quickstart/.test(path)),
    [],
    'what is named after a real part has it',
  )
})
