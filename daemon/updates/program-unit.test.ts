import { test } from 'tap'
import { unitOf } from './program-unit.ts'

const shown = (active: string, result: string, status: number) =>
  `ActiveState=${active}\nResult=${result}\nInvocationID=8f2c\nExecMainStatus=${status}\n`

const cases: readonly (readonly [active: string, result: string, status: number, state: string])[] = [
  ['active', 'success', 0, 'running'],
  ['activating', 'success', 0, 'starting'],
  ['activating', 'exit-code', 1, 'starting'],
  ['activating', 'watchdog', 0, 'starting'],
  ['deactivating', 'success', 0, 'starting'],
  ['reloading', 'success', 0, 'starting'],
  ['failed', 'exit-code', 78, 'failed'],
  ['inactive', 'exit-code', 78, 'failed'],
  ['inactive', 'success', 0, 'stopped'],
]
for (const [active, result, status, state] of cases) {
  test(`a unit that is ${active} with the result ${result} is ${state}`, async (t) => {
    t.same(unitOf(shown(active, result, status)), { state, invocation: '8f2c', exitStatus: status })
  })
}

test('of an answer without properties nothing is concluded', async (t) => {
  t.same(unitOf(''), { state: 'starting', invocation: '', exitStatus: 0 })
})
