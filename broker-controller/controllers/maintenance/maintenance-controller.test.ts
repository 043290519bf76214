import { type Test, test } from 'tap'
import { maintenanceKey, readMaintenanceStatus } from '../../../api/node/fleet-maintenance.ts'
import { maintenanceOf, wantedUpgradeOf } from '../../../api/node/node-maintenance.ts'
import type { OsReport } from '../../../api/node/os-updates.ts'
import { evictionAnswer } from '../../../api/pod/eviction-answer.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { rebootRequestController } from '../reboots/reboot-request-controller.ts'
import { maintenanceController } from './maintenance-controller.ts'
import { maintenanceMetrics } from './maintenance-metrics.ts'
import { failedMaintenance, maintenanceCommands } from './maintenance-object.ts'
import { usualMaintenance } from './maintenance-rules.ts'
import { nothingPending } from './testing/maintenance-nodes.ts'

const owner = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'o1', controller: true }]

async function opened(t: Test, ...expectedErrors: readonly string[]) {
  const world = fleet(t, ...expectedErrors)
  const registry = metricsRegistry()
  const metrics = maintenanceMetrics(registry)
  const names = ['pi-1', 'pi-2']
  const [asked, budget]: [string[], { allows: boolean }] = [[], { allows: true }]
  const report = async (name: string, over: Partial<OsReport>) => {
    const node = await world.node(name)
    const report = JSON.stringify({ ...nothingPending, ...over })
    const annotations = { ...node.metadata.annotations, 'bramble.dev/os-updates': report }
    await world.store.update('nodes', { ...node, metadata: { ...node.metadata, annotations } })
    await world.pass(3)
  }
  for (const name of names) {
    await world.join({ name, annotations: { 'bramble.dev/remote-reboot': 'enabled' } })
    await world.reboot(name)
    await report(name, { security: 2, packages: ['openssl'] })
  }
  await world.run({ name: 'web', nodeName: 'pi-1', metadata: { ownerReferences: owner } })
  const evict = async ({ namespace, name }: { readonly namespace: string; readonly name: string }) => {
    asked.push(`${namespace}/${name}`)
    if (!budget.allows) return evictionAnswer(429)
    await world.store.delete('pods', { namespace, name })
    return evictionAnswer(201)
  }
  const upgraded = async (name: string, over: Partial<OsReport> = {}) => {
    const { id = '' } = wantedUpgradeOf(await world.node(name)) ?? {}
    await report(name, { upgrade: { id, outcome: 'done' }, ...over })
  }
  return {
    ...{ world, registry, asked, budget, report, upgraded },
    phase: async (name: string) => maintenanceOf(await world.node(name))?.phase,
    isCordoned: async (name: string) => (await world.node(name)).spec?.unschedulable === true,
    failure: async () => failedMaintenance((await world.store.get('configmaps', maintenanceKey)) ?? {}),
    start: () => world.start(maintenanceController({ ...world, metrics, evict }), rebootRequestController(world)),
  }
}

async function command(world: Fleet, data: { readonly [key: string]: string | null }) {
  const found = await world.store.get('configmaps', maintenanceKey)
  const merged = Object.entries({ ...found?.data, ...data }).flatMap(([key, value]) =>
    value === null ? [] : [[key, value] as const],
  )
  const object = { apiVersion: 'v1' as const, kind: 'ConfigMap' as const, metadata: maintenanceKey, ...found }
  const next = { ...object, data: Object.fromEntries(merged) }
  await (found === undefined ? world.store.create('configmaps', next) : world.store.update('configmaps', next))
  await world.pass(3)
}

test('machines are drained, upgraded, restarted, checked and given back, also over restarts of the controller', async (t) => {
  const { world, report, upgraded, phase, isCordoned, asked, start } = await opened(t)
  let stop = start()
  await world.pass(400, 50)
  t.equal(await phase('pi-1'), undefined, 'nothing begins before an operator starts it')
  await command(world, maintenanceCommands.start(usualMaintenance))
  await world.pass(10)
  t.same([await phase('pi-1'), await isCordoned('pi-1'), asked], ['Upgrading', true, ['default/web']])
  t.equal(await phase('pi-2'), undefined, 'one at a time')
  await stop()
  stop = start()
  await upgraded('pi-1', { rebootRequired: true })
  await world.pass(5)
  t.equal(await phase('pi-1'), 'Rebooting')
  t.match((await world.node('pi-1')).metadata.annotations, { 'bramble.dev/reboot-status': /Pending/ })
  await world.reboot('pi-1')
  await stop()
  t.teardown(start())
  await report('pi-1', {})
  await world.pass(10)
  t.equal(await phase('pi-1'), 'Checking')
  await world.pass(130, 10)
  t.same([await phase('pi-1'), await isCordoned('pi-1')], ['Done', false])
  await world.pass(10)
  t.equal(await phase('pi-2'), 'Upgrading', 'the next has its turn')
  await upgraded('pi-2')
  await world.pass(140, 10)
  t.equal(await phase('pi-2'), 'Done', 'no reboot was required')
  t.same(
    (await world.reasons('pi-2')).filter((reason) => /^(Maint|Reboot)/.test(reason)),
    ['MaintenanceDraining', 'MaintenanceUpgrading', 'MaintenanceChecking', 'MaintenanceDone'],
  )
})

test('a budget holds a drain up until it allows it', async (t) => {
  const { world, budget, phase, asked, start } = await opened(t)
  t.teardown(start())
  budget.allows = false
  await command(world, maintenanceCommands.start(usualMaintenance))
  await world.pass(60)
  t.equal(await phase('pi-1'), 'Draining')
  t.ok(asked.length >= 5 && asked.length <= 15, `asked ${asked.length} times in a minute`)
  const map = await world.store.get('configmaps', maintenanceKey)
  t.match(map && readMaintenanceStatus(map)?.active, [{ node: 'pi-1', message: 'waits for default/web' }])
  budget.allows = true
  await world.pass(10)
  t.equal(await phase('pi-1'), 'Upgrading')
})

test('a failure stops the rest until an operator resumes, and its machine is then given back', async (t) => {
  const { world, registry, report, phase, isCordoned, failure, start } = await opened(t)
  const stop = start()
  await command(world, maintenanceCommands.start(usualMaintenance))
  await world.pass(10)
  const { id = '' } = wantedUpgradeOf(await world.node('pi-1')) ?? {}
  await report('pi-1', { upgrade: { id, outcome: 'failed', reason: 'no space left' } })
  await world.pass(5)
  t.same([await phase('pi-1'), await isCordoned('pi-1')], ['Failed', true])
  t.match(await failure(), /pi-1 failed: its upgrade failed: no space left/)
  t.match(registry.text(), /phase="Paused",by="failures"/)
  await world.pass(7200, 50)
  t.equal(await phase('pi-2'), undefined)
  const { items } = await world.store.list('events')
  t.match(
    items.filter(({ reason }) => reason === 'MaintenancePaused'),
    [{ type: 'Warning', message: /maintenance resume/ }],
  )
  await command(world, maintenanceCommands.resume(rfc3339(world.clock.wallMs())))
  await world.pass(10)
  t.same([await phase('pi-1'), await isCordoned('pi-1')], ['Abandoned', false])
  t.equal(await phase('pi-2'), 'Upgrading')
  t.equal(await failure(), undefined)
  await stop()
  t.notMatch(registry.text(), /bramble_maintenance_phase\{/, 'of another controller from then on')
})

test('a machine that a person has cordoned is left alone, and a person may take over the cordon of the maintenance', async (t) => {
  const { world, budget, phase, isCordoned, start } = await opened(t)
  t.teardown(start())
  const node = await world.node('pi-1')
  await world.store.update('nodes', { ...node, spec: { ...node.spec, unschedulable: true } })
  await command(world, maintenanceCommands.start(usualMaintenance))
  await world.pass(10)
  t.equal(await phase('pi-1'), undefined)
  t.equal(await phase('pi-2'), 'Upgrading')
  budget.allows = false
  const second = await world.node('pi-2')
  const { 'bramble.dev/cordoned-by': _, ...annotations } = second.metadata.annotations ?? {}
  await world.store.update('nodes', { ...second, metadata: { ...second.metadata, annotations } })
  const { id = '' } = wantedUpgradeOf(await world.node('pi-2')) ?? {}
  const report = JSON.stringify({ ...nothingPending, upgrade: { id, outcome: 'done' } })
  const third = await world.node('pi-2')
  const reported = { ...third.metadata.annotations, 'bramble.dev/os-updates': report }
  await world.store.update('nodes', { ...third, metadata: { ...third.metadata, annotations: reported } })
  await world.pass(140, 10)
  t.same([await phase('pi-2'), await isCordoned('pi-2')], ['Done', true])
})

test('a pause gives back what is drained, and what was started goes on where the object is gone', async (t) => {
  const { world, asked, budget, upgraded, phase, isCordoned, start } = await opened(t)
  t.teardown(start())
  budget.allows = false
  await command(world, maintenanceCommands.start(usualMaintenance))
  t.equal(await phase('pi-1'), 'Draining')
  const before = asked.length
  await command(world, maintenanceCommands.pause('Paused by an operator'))
  await world.pass(5)
  t.same([await phase('pi-1'), await isCordoned('pi-1')], ['Postponed', false])
  t.equal(asked.length, before, 'no pod of it is asked to leave any more')
  budget.allows = true
  await command(world, maintenanceCommands.resume(rfc3339(world.clock.wallMs())))
  await world.pass(10)
  t.equal(await phase('pi-2'), 'Upgrading')
  await world.store.delete('configmaps', maintenanceKey)
  await upgraded('pi-2')
  await world.pass(140, 10)
  t.same([await phase('pi-2'), await isCordoned('pi-2')], ['Done', false])
  await world.pass(400, 50)
  t.equal(await phase('pi-1'), 'Postponed')
})

test('an object that cannot be read begins nothing, and is logged once', async (t) => {
  const { world, phase, start } = await opened(t, 'The maintenance of machines cannot be used')
  t.teardown(start())
  await command(world, { rules: '{"window":' })
  await world.pass(10)
  t.equal(await phase('pi-1'), undefined)
})
