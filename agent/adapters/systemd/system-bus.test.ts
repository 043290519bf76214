import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { noDBus, privateBus } from '../../testing/private-bus.ts'
import { onSystemBus, openSystemBus } from './system-bus.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const busItself = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
}

test('a connection with native code may be collected as soon as it is closed', { skip: noDBus }, async (t) => {
  const { socketPath, remove } = await privateBus()
  t.teardown(remove)
  for (let times = 0; times < 50; times++) {
    const names = await onSystemBus({ socketPath, withDescriptors: true }, ({ call }) =>
      call({ ...busItself, member: 'ListNames' }),
    )
    collect()
    t.match(names, [Array])
  }
})

test('a connection that goes on keeps nothing of the answers it gave', { skip: noDBus }, async (t) => {
  const { socketPath, remove } = await privateBus()
  t.teardown(remove)
  const bus = await openSystemBus({ socketPath })
  t.teardown(async () => bus.close())
  const answers: WeakRef<object>[] = []
  for (let times = 0; times < 50; times++)
    answers.push(new WeakRef(await bus.call({ ...busItself, member: 'ListNames' })))
  await turn()
  collect()
  const left = answers.filter((answer) => answer.deref() !== undefined).length
  t.ok(left <= 2, `${left} of 50 are left`)
})
