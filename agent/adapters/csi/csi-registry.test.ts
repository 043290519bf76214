import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { cell } from '../../../daemon/cell.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { NodeDriver } from '../../pods/volumes/csi/node-drivers.ts'
import { type CsiDriver, type CsiDriverOptions, csiDriver } from '../../testing/csi-driver.ts'
import { until } from '../../testing/until.ts'
import { csiRegistry } from './csi-registry.ts'

async function machine(t: Test) {
  const kubeletDirectory = await mkdtemp(join(tmpdir(), 'csi-'))
  const csiDrivers = cell<readonly NodeDriver[] | undefined>(undefined)
  const log = quietLog(t)
  const writes = { csiDrivers }
  const nothing = async () => undefined
  const registry = csiRegistry({ kubeletDirectory, writes, open: nothing, release: nothing, clock: systemClock, log })
  const stop = new AbortController()
  const drivers: CsiDriver[] = []
  let running: Promise<void> | undefined
  t.teardown(async () => {
    stop.abort()
    await running
    await Promise.all(drivers.map((driver) => driver.close()))
    await rm(kubeletDirectory, { recursive: true, force: true })
  })
  return {
    ...{ kubeletDirectory, registry, csiDrivers, log },
    names: () => csiDrivers.get()?.map(({ name }) => name),
    start() {
      running = registry.run(stop.signal)
    },
    async driver(options: CsiDriverOptions = {}) {
      const made = await csiDriver(kubeletDirectory, options)
      drivers.push(made)
      return made
    },
  }
}

function notified(driver: CsiDriver): readonly unknown[] {
  return driver.calls.flatMap(({ name, request }) => (name === 'NotifyRegistrationStatus' ? [request] : []))
}

test('a driver that comes is registered, and one whose socket goes is not used any more', async (t) => {
  const { start, driver, registry, csiDrivers, names } = await machine(t)
  const first = await driver({ maxVolumes: 8, topology: { 'topology.example.com/rack': 'a' } })
  start()
  await until('the driver is registered', () => names()?.length === 1)
  t.same(csiDrivers.get(), [
    { name: 'disk.example.com', nodeID: 'node-1', topology: { 'topology.example.com/rack': 'a' }, maxVolumes: 8 },
  ])
  t.ok(registry.driver('disk.example.com')?.capabilities.stages)
  await until('it is notified', () => notified(first).length === 1)
  t.same(notified(first), [{ registered: true, error: '' }])
  await driver({ name: 'other.example.com' })
  await until('the other is registered', () => names()?.length === 2)
  t.same(names(), ['disk.example.com', 'other.example.com'])
  await rm(first.registrationSocket)
  await until('the first is gone', () => names()?.length === 1)
  t.equal(registry.driver('disk.example.com'), undefined)
})

test('what is not a driver is refused, and holds up no other', async (t) => {
  const { kubeletDirectory, start, driver, log } = await machine(t)
  const wrong = [
    await driver({ name: 'a.example.com', type: 'DevicePlugin' }),
    await driver({ name: 'b.example.com', versions: ['0.3.0'] }),
    await driver({ name: 'c.example.com', nodeId: '' }),
  ]
  const hung = await driver({ name: 'd.example.com' })
  hung.hang('NodeGetInfo')
  await driver({ name: 'e.example.com' })
  const silent = createServer()
  await new Promise<void>((resolve) => void silent.listen(join(kubeletDirectory, 'plugins_registry', '.new'), resolve))
  t.teardown(() => void silent.close())
  start()
  await until('all are refused', () => wrong.every((one) => notified(one).length > 0))
  const error = (index: number) => notified(wrong[index] ?? hung)[0]
  t.match(error(0), { registered: false, error: /^no handler registered for plugin type: DevicePlugin at socket / })
  t.match(error(1), {
    registered: false,
    error: /none of the CSI versions supported by this driver are supported: 0.3.0$/,
  })
  t.match(error(2), { registered: false, error: 'driver c.example.com has no ID for this node' })
  t.ok(log.messages('warn').every((message) => message === 'Plugin not registered'))
  t.equal(notified(hung).length, 0)
})

test('a machine without drivers has the folders that their pods mount, and asks nothing', async (t) => {
  const { kubeletDirectory, start, csiDrivers } = await machine(t)
  await chmod(kubeletDirectory, 0o755)
  start()
  await until('the drivers are settled', () => csiDrivers.get() !== undefined)
  t.same(csiDrivers.get(), [])
  if (process.getuid?.() === 0)
    t.same((await readdir(kubeletDirectory)).sort(), ['plugins', 'plugins_registry', 'pods'])
})
