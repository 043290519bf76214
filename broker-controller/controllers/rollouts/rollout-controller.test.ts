import { type Test, test } from 'tap'
import { readStatus, rolloutKey } from '../../../api/node/agent-rollout.ts'
import { type AgentUpdateReport, admissionOf, wantedReleaseOf } from '../../../api/node/agent-update.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { rolloutController } from './rollout-controller.ts'
import { rolloutMetrics } from './rollout-metrics.ts'
import { failedRollout, type RolloutWish, rolloutCommands } from './rollout-object.ts'
import { usualRules } from './rollout-rules.ts'

const target = { version: '2.0.0', sequence: 20, digest: 'b'.repeat(64), floor: 1 }
const wish: RolloutWish = { target, releases: [target], rules: { ...usualRules, perLink: 10 } }

type Outcome = NonNullable<AgentUpdateReport['release']>['outcome']

async function opened(t: Test, ...expectedErrors: readonly string[]) {
  const world = fleet(t, ...expectedErrors)
  const registry = metricsRegistry()
  const metrics = rolloutMetrics(registry)
  const names = ['pi-1', 'pi-2', 'pi-3']
  const running = { version: '1.0.0', isOnTrial: false }
  for (const name of names) await world.join({ name })
  const annotate = async (name: string, report: AgentUpdateReport) => {
    const node = await world.node(name)
    const annotations = { ...node.metadata.annotations, 'bramble.dev/agent-update': JSON.stringify(report) }
    await world.store.update('nodes', { ...node, metadata: { ...node.metadata, annotations } })
    await world.pass(3)
  }
  for (const name of names) await annotate(name, { version: '1.0.0', sequence: 10 })
  const report = (name: string, outcome: Outcome) =>
    annotate(name, {
      ...(outcome === 'committed' ? { version: '2.0.0', sequence: 20 } : { version: '1.0.0', sequence: 10 }),
      release: { version: '2.0.0', sequence: 20, outcome },
    })
  const admitted = async () => {
    const nodes = await Promise.all(names.map((name) => world.node(name)))
    return nodes.filter((node) => wantedReleaseOf(node) !== undefined).map(({ metadata }) => metadata.name)
  }
  return {
    world,
    registry,
    running,
    report,
    admitted,
    start: () => world.start(rolloutController({ ...world, metrics, runningController: async () => running })),
  }
}

async function command(world: Fleet, data: { readonly [key: string]: string | null }) {
  const found = await world.store.get('configmaps', rolloutKey)
  const merged = Object.entries({ ...found?.data, ...data }).flatMap(([key, value]) =>
    value === null ? [] : [[key, value] as const],
  )
  const object = { apiVersion: 'v1' as const, kind: 'ConfigMap' as const, metadata: rolloutKey, ...found }
  const next = { ...object, data: Object.fromEntries(merged) }
  await (found === undefined ? world.store.create('configmaps', next) : world.store.update('configmaps', next))
  await world.pass(3)
}

const phase = async (world: Fleet) => {
  const found = await world.store.get('configmaps', rolloutKey)
  return found && readStatus(found)?.phase
}

test('no node gets a release before the controller has committed its own', async (t) => {
  const { world, running, admitted, start } = await opened(t)
  t.teardown(start())
  await command(world, rolloutCommands.start({ ...wish, controller: { version: '2.0.0' } }))
  t.same([await phase(world), await admitted()], ['Waiting', []])
  Object.assign(running, { version: '2.0.0', isOnTrial: true })
  await world.pass(70)
  t.same([await phase(world), await admitted()], ['Waiting', []])
  running.isOnTrial = false
  await world.pass(70)
  t.equal((await admitted()).length, 1)
})

test('a release goes to one node, soaks, and goes to the others, also over a restart of the controller', async (t) => {
  const { world, report, admitted, start } = await opened(t)
  const stop = start()
  await world.pass(2)
  t.same(await admitted(), [], 'without a rollout nothing is admitted')
  await command(world, rolloutCommands.start(wish))
  const [canary = ''] = await admitted()
  t.equal((await admitted()).length, 1)
  await report(canary, 'trial')
  await report(canary, 'committed')
  t.equal(await phase(world), 'Soaking')
  await stop()
  t.teardown(start())
  await world.pass(1800, 50)
  t.same(await admitted(), [canary], 'the soak goes on')
  await world.pass(1900, 50)
  t.equal((await admitted()).length, 3)
  for (const name of await admitted()) await report(name, 'committed')
  t.equal(await phase(world), 'Complete')
})

test('a node that takes the release back pauses the rollout, is kept as a failure, and an operator resumes it', async (t) => {
  const { world, registry, report, admitted, start } = await opened(t)
  const stop = start()
  await command(world, rolloutCommands.start(wish))
  const [canary = ''] = await admitted()
  await report(canary, 'trial')
  await report(canary, 'rolledBack')
  t.equal(await phase(world), 'Paused')
  t.match(registry.text(), /phase="Paused",by="failures"/)
  const failure = async () => failedRollout((await world.store.get('configmaps', rolloutKey)) ?? {})
  t.match(await failure(), { version: '2.0.0', reason: /took it back/ })
  t.match(admissionOf(await world.node(canary)), { outcome: 'rolledBack', failures: 1 })
  await world.pass(7200, 50)
  t.same(await admitted(), [canary])
  const { items } = await world.store.list('events')
  t.match(
    items.filter(({ reason }) => reason === 'AgentRolloutPaused'),
    [{ type: 'Warning', message: /updates resume/ }],
  )
  await command(world, rolloutCommands.resume(rfc3339(world.clock.wallMs())))
  t.equal(await failure(), undefined)
  await world.pass(3700, 50)
  t.equal((await admitted()).length, 3)
  await stop()
  t.notMatch(registry.text(), /bramble_rollout/, 'of another controller from then on')
})

test('a pause of the operator withdraws what has not begun, until it is resumed', async (t) => {
  const { world, admitted, start } = await opened(t)
  t.teardown(start())
  await command(world, rolloutCommands.start(wish))
  t.equal((await admitted()).length, 1)
  await command(world, rolloutCommands.pause('paused by an operator'))
  t.same(await admitted(), [])
  t.equal(await phase(world), 'Paused')
  t.equal(failedRollout((await world.store.get('configmaps', rolloutKey)) ?? {}), undefined, 'nothing has failed')
  await command(world, rolloutCommands.resume(rfc3339(world.clock.wallMs())))
  t.equal((await admitted()).length, 1)
})

test('an object that cannot be read admits nothing, and is logged', async (t) => {
  const { world, admitted, start } = await opened(t, 'The rollout of the agent cannot be used')
  t.teardown(start())
  await command(world, { rollout: '{"target":' })
  t.same(await admitted(), [])
})
