import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import dbus from 'dbus-next'
import { test } from 'tap'
import { noDBus, privateBus, serve } from '../../testing/private-bus.ts'
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

const service = { destination: 'org.example.One', path: '/one', interface: 'org.example.One' }

test('a call has the body of its reply, or an error with its name on the bus', { skip: noDBus }, async (t) => {
  const bus = await privateBus()
  t.teardown(bus.remove)
  const seen: unknown[] = []
  const one = await serve(bus, ['org.example.One'], ({ member, path, interface: from, signature, body }) => {
    seen.push({ member, path, interface: from, signature, body })
    if (member === 'Fail') return 'org.example.Failed'
    return member === 'Get' ? { signature: 'v', body: [new dbus.Variant('u', 7)] } : { signature: 's', body: ['done'] }
  })
  t.teardown(async () => one.leave())
  await onSystemBus({ socketPath: bus.socketPath }, async ({ call, property }) => {
    t.same(await call({ ...service, member: 'Do', signature: 'su', body: ['a', 1] }), ['done'])
    t.equal(await property(service, 'Level'), 7)
    await t.rejects(call({ ...service, member: 'Fail' }), {
      name: 'BusError',
      code: 'org.example.Failed',
      message: 'Cannot call Fail of org.example.One',
    })
    await t.rejects(call({ ...service, destination: 'org.example.None', member: 'Do' }), {
      code: 'org.freedesktop.DBus.Error.ServiceUnknown',
    })
  })
  t.match(seen.slice(0, 2), [
    { member: 'Do', path: '/one', interface: 'org.example.One', signature: 'su', body: ['a', 1] },
    {
      member: 'Get',
      interface: 'org.freedesktop.DBus.Properties',
      signature: 'ss',
      body: ['org.example.One', 'Level'],
    },
  ])
})

test('a call without an answer ends at its deadline, without a name of an error', { skip: noDBus }, async (t) => {
  const bus = await privateBus()
  t.teardown(bus.remove)
  const one = await serve(bus, ['org.example.One'], () => undefined)
  t.teardown(async () => one.leave())
  // The connection has the same deadline: a machine that stands still for some seconds has to make it, too.
  await onSystemBus({ socketPath: bus.socketPath }, async ({ call }) => {
    await t.rejects(call({ ...service, member: 'Do' }), { name: 'BusError', code: '', cause: { message: /No answer/ } })
  })
})

test('signals of the interface are received, those of others are not', { skip: noDBus }, async (t) => {
  const bus = await privateBus()
  t.teardown(bus.remove)
  const one = await serve(bus, ['org.example.One'], () => undefined)
  t.teardown(async () => one.leave())
  const listening = await openSystemBus({ socketPath: bus.socketPath })
  t.teardown(async () => listening.close())
  const seen: unknown[] = []
  const last = new Promise<void>((resolve) => {
    const take = (signal: { readonly member: string }) => {
      seen.push(signal)
      if (signal.member === 'Last') resolve()
    }
    void listening.listen({ sender: 'org.example.One', interface: 'org.example.One', first: 'disk' }, take).then(() => {
      one.signal('/one', 'org.example.Two', 'Other', 's', ['disk'])
      one.signal('/one', 'org.example.One', 'Unwanted', 's', ['network'])
      one.signal('/one', 'org.example.One', 'Full', 'su', ['disk', 9])
      one.signal('/one', 'org.example.One', 'Last', 's', ['disk'])
    })
  })
  await last
  t.same(seen, [
    { member: 'Full', body: ['disk', 9] },
    { member: 'Last', body: ['disk'] },
  ])
})

test('a machine without a bus, and a bus that ends, are noticed', { skip: noDBus }, async (t) => {
  await t.rejects(openSystemBus({ socketPath: '/nowhere/bus' }), {
    name: 'BusError',
    code: '',
    message: 'Cannot connect to the system bus at /nowhere/bus',
  })
  const daemon = await privateBus()
  t.teardown(daemon.remove)
  const bus = await openSystemBus({ socketPath: daemon.socketPath })
  t.teardown(async () => bus.close())
  await daemon.stop()
  await bus.ended
  await t.rejects(bus.call({ ...busItself, member: 'ListNames' }), { name: 'BusError', code: '' })
})
