/** What becomes of pods when machines and networks fail: each story once as it is, and once with the controller restarted in its middle. */
import { type Test, test } from 'tap'
import type { NodeOverrides } from '../../../api/testing/builders.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { podCleanupController } from '../pods/pod-cleanup-controller.ts'
import { taintEvictionController } from '../pods/taint-eviction-controller.ts'
import { nodeLifecycleController } from './node-lifecycle-controller.ts'
import { defaultNodeLifecycleSettings, type NodeLifecycleSettings } from './node-lifecycle-settings.ts'

const names = (count: number, first = 1) => Array.from({ length: count }, (_, i) => `pi-${i + first}`)
const behind = (link: string, nodes: readonly string[]): NodeOverrides[] =>
  nodes.map((name) => ({ name, labels: { 'bramble.dev/link': link } }))

type Story = {
  readonly nodes: readonly NodeOverrides[]
  readonly settings?: Partial<NodeLifecycleSettings>
  readonly expectedErrors?: readonly string[]
  /** `middle`: here the controller may be restarted. */
  readonly run: (t: Test, world: Fleet, middle: () => Promise<void>) => Promise<void>
}

function story(title: string, { nodes, settings, run }: Story): void {
  for (const isRestarted of [false, true]) {
    test(isRestarted ? `${title}, with the controller restarted in the middle` : title, async (t) => {
      const world = fleet(t)
      await world.join(...nodes)
      for (const [i, { name = '' }] of nodes.entries())
        await world.run({ name: `web-${i + 1}`, nodeName: name, tolerations })
      const start = () =>
        world.start(
          nodeLifecycleController(world, { ...defaultNodeLifecycleSettings, ...settings }),
          taintEvictionController(world),
          podCleanupController(world),
        )
      let stop = start()
      t.teardown(() => stop())
      await world.pass(20)
      await run(t, world, async () => {
        if (!isRestarted) return
        await stop()
        await world.forgetLeases()
        stop = start()
        await world.clock.settle()
      })
    })
  }
}

/** Impatient pods: a taint that is put on for a moment only costs them their place. */
const tolerations = [
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 },
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 },
] as const

async function drop(world: Fleet, nodes: readonly string[]): Promise<void> {
  world.silence(...nodes)
  for (const name of nodes) await world.connection(name, 'lost')
}

async function text(world: Fleet, node: string, reason: string): Promise<string> {
  const { items } = await world.store.list('events')
  return items.find((it) => it.involvedObject.name === node && it.reason === reason)?.message ?? ''
}

async function readyMessage(world: Fleet, name: string): Promise<string> {
  const { status } = await world.node(name)
  return status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? ''
}

story('an access point away for 90 seconds, with 8 of 12 nodes behind it: 0 evictions', {
  nodes: [...behind('attic', names(8)), ...behind('cellar', names(4, 9))],
  async run(t, world, middle) {
    await drop(world, names(8))
    await world.pass(60)
    t.match(await world.state('pi-3'), /^Unknown/)
    await middle()
    await world.pass(30)
    for (const name of names(8)) {
      await world.revive(name)
      await world.pass(1)
    }
    await world.pass(120)
    t.same(await world.leaving(), [])
    t.same(await world.tainted(), [])
    t.equal(await world.state('pi-3'), 'True')
  },
})

story(
  'an access point away for ten minutes, with a third of its zone behind it: the Event explains why nothing moves',
  {
    nodes: [...behind('attic', names(4)), ...names(8, 5).map((name) => ({ name }))],
    async run(t, world, middle) {
      await drop(world, names(4))
      await world.pass(120)
      t.match(
        await text(world, 'pi-1', 'EvictionsHeld'),
        /^4 of the 4 nodes of link attic were lost together: the network is suspected\. Its pods stay until one of them is back and the others are not, or for 15 min\.$/,
      )
      t.match((await world.node('pi-1')).metadata.annotations, { 'bramble.dev/suspected-link': 'attic' })
      await middle()
      await world.pass(480)
      t.same(await world.leaving(), [])
      await world.revive(...names(4))
      await world.pass(60)
      t.same(await world.leaving(), [])
      t.same((await world.node('pi-1')).metadata.annotations, {})
    },
  },
)

story('the access point is back, one of its nodes is not: that one is dead, and only its pods move', {
  nodes: [...behind('attic', names(4)), ...names(8, 5).map((name) => ({ name }))],
  async run(t, world, middle) {
    await drop(world, names(4))
    await world.pass(200)
    await middle()
    await world.revive(...names(3))
    await world.pass(45)
    t.same(await world.leaving(), [], 'it has the same grace period as any node')
    await world.pass(30)
    t.same(await world.leaving(), ['web-4'])
  },
})

story('no node is back after the patience: pods move, at the usual rate', {
  nodes: [...behind('attic', names(3)), ...names(9, 4).map((name) => ({ name }))],
  async run(t, world, middle) {
    await drop(world, names(3))
    await world.pass(600)
    await middle()
    await world.pass(290)
    t.same(await world.leaving(), [])
    await world.pass(45)
    t.equal((await world.leaving()).length, 3)
    t.ok((await world.reasons('pi-2')).includes('EvictionsResumed'))
  },
})

story('one of them is declared out of service: the network is not waited for any longer', {
  nodes: [...behind('attic', names(3)), ...names(9, 4).map((name) => ({ name }))],
  async run(t, world, middle) {
    await drop(world, names(3))
    await world.pass(120)
    await middle()
    const node = await world.node('pi-2')
    const taints = [
      ...(node.spec?.taints ?? []),
      { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' } as const,
    ]
    await world.store.update('nodes', { ...node, spec: { ...node.spec, taints } })
    await world.pass(100)
    t.same((await world.leaving()).toSorted(), ['web-1', 'web-3'])
    t.equal(await world.pod('web-2'), undefined, 'its pods need no confirmation')
  },
})

story('nodes without the label share a link when they connect from one address', {
  nodes: names(12).map((name) => ({ name })),
  async run(t, world, middle) {
    for (const name of names(4)) await world.connection(name, 'online', '203.0.113.7')
    for (const name of names(8, 5)) await world.connection(name, 'online', `192.0.2.${name.slice(3)}`)
    await world.pass(20)
    await drop(world, names(4))
    await world.pass(120)
    await middle()
    await world.pass(200)
    t.same(await world.leaving(), [])
    t.match(await text(world, 'pi-1', 'EvictionsHeld'), /link 203\.0\.113\.7/)
  },
})

story('with suspicion switched off a lost link costs its nodes their pods', {
  nodes: [...behind('attic', names(3)), ...names(9, 4).map((name) => ({ name }))],
  settings: { linkSuspicionPatienceMs: 0 },
  async run(t, world, middle) {
    await drop(world, names(3))
    await world.pass(30)
    await middle()
    await world.pass(130)
    t.same((await world.leaving()).toSorted(), ['web-1', 'web-2', 'web-3'])
  },
})

story('more than half of a small zone is lost: its pods wait, whatever the cause', {
  nodes: names(10).map((name) => ({ name })),
  async run(t, world, middle) {
    await drop(world, names(6))
    await world.pass(120)
    await middle()
    await world.pass(480)
    t.same(await world.leaving(), [])
  },
})

story('one zone of three is lost: its pods move, one node each ten seconds', {
  nodes: names(9).map((name, i) => ({ name, labels: { 'topology.kubernetes.io/zone': `zone-${i % 3}` } })),
  async run(t, world, middle) {
    await drop(world, ['pi-1', 'pi-4', 'pi-7'])
    await world.pass(30)
    await middle()
    const left: number[] = []
    for (let second = 0; second < 120; second++) {
      await world.pass(1)
      left.push((await world.leaving()).length)
    }
    const [first, second, third] = [1, 2, 3].map((count) => left.indexOf(count))
    t.same([(second ?? 0) - (first ?? 0), (third ?? 0) - (second ?? 0)], [10, 10], left.join())
  },
})

story('every node is lost: more likely it is us, and nothing moves until somebody is back', {
  nodes: names(9).map((name, i) => ({ name, labels: { 'topology.kubernetes.io/zone': `zone-${i % 3}` } })),
  async run(t, world, middle) {
    await drop(world, names(9))
    await world.pass(300)
    await middle()
    await world.pass(900)
    t.same(await world.leaving(), [])
    await world.revive(...names(8))
    await world.pass(45)
    t.same(await world.leaving(), [], 'the last has as long as anyone')
    await world.pass(30)
    t.same(await world.leaving(), ['web-9'])
  },
})

story('a planned reboot of three minutes: 0 evictions', {
  nodes: names(4).map((name) => ({ name })),
  async run(t, world, middle) {
    await world.goodbye('pi-1', 'reboot', 240)
    await world.pass(7)
    t.equal(await world.state('pi-1'), 'Unknown unreachable:NoSchedule')
    t.match(
      await readyMessage(world, 'pi-1'),
      /^The node disconnected cleanly \(reboot\) and is expected back by .*Z\.$/,
    )
    t.match(await text(world, 'pi-1', 'EvictionsHeld'), /cleanly \(reboot\).*Its pods stay until then\.$/)
    await world.pass(83)
    await middle()
    await world.pass(90)
    await world.connection('pi-1', 'online')
    await world.pass(1)
    await world.reboot('pi-1')
    await world.pass(60)
    t.same(await world.leaving(), [])
    t.equal(await world.state('pi-1'), 'True')
    t.same((await world.node('pi-1')).metadata.annotations ?? {}, {})
    t.notOk((await world.reasons('pi-1')).includes('EvictionsResumed'))
  },
})

story('a planned reboot that never ends: the usual way goes on when its time has passed', {
  nodes: names(4).map((name) => ({ name })),
  async run(t, world, middle) {
    await world.goodbye('pi-1', 'reboot', 180)
    await world.pass(100)
    await middle()
    await world.pass(79)
    t.same(await world.leaving(), [])
    await world.pass(20)
    t.same(await world.leaving(), ['web-1'])
    t.equal(await readyMessage(world, 'pi-1'), 'Kubelet stopped posting node status.')
    t.ok((await world.reasons('pi-1')).includes('EvictionsResumed'))
  },
})

story('a goodbye that names no time, or whose word is not taken, holds nothing', {
  nodes: names(4).map((name) => ({ name })),
  settings: { plannedAbsenceLimitMs: 0 },
  async run(t, world, middle) {
    await world.goodbye('pi-1', 'reboot', 3600)
    await world.pass(10)
    t.match(await readyMessage(world, 'pi-1'), /^The node disconnected cleanly \(reboot\)\.$/)
    await middle()
    await world.pass(80)
    t.same(await world.leaving(), ['web-1'])
  },
})

story('a node that comes and goes: nothing new is placed on it until it has stayed for a while', {
  nodes: names(4).map((name) => ({ name })),
  async run(t, world, middle) {
    for (let i = 0; i < 4; i++) {
      await drop(world, ['pi-1'])
      await world.pass(20)
      await world.revive('pi-1')
      await world.pass(40)
    }
    t.equal(await world.state('pi-1'), 'True flapping:NoSchedule')
    t.match(
      await text(world, 'pi-1', 'NodeFlapping'),
      'Ready was lost 4 times within 15 min: no new pods until it has been Ready for 5 min.',
    )
    await middle()
    await world.pass(240)
    t.equal(await world.state('pi-1'), 'True flapping:NoSchedule')
    await world.pass(70)
    t.equal(await world.state('pi-1'), 'True')
    t.same(await world.leaving(), [])
  },
})

story('with damping switched off a node may flap as it likes', {
  nodes: names(4).map((name) => ({ name })),
  settings: { flappingLosses: 0 },
  async run(t, world, middle) {
    for (let i = 0; i < 8; i++) {
      await drop(world, ['pi-1'])
      await world.pass(20)
      await world.revive('pi-1')
      await world.pass(40)
      if (i === 4) await middle()
    }
    t.equal(await world.state('pi-1'), 'True')
  },
})

for (const [title, tolerationSeconds, leavesAfter] of [
  ['none at all', 0, 0],
  ['half a minute', 30, 30],
  ['five minutes', 300, 300],
  ['for ever', undefined, undefined],
] as const) {
  story(`a dead node whose pod tolerates it ${title}`, {
    nodes: names(4).map((name) => ({ name })),
    async run(t, world, middle) {
      const patience = tolerations.map(({ tolerationSeconds: _, ...toleration }) => ({
        ...toleration,
        ...(tolerationSeconds !== undefined && { tolerationSeconds }),
      }))
      const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'it', uid: 'uid-of-it', controller: true }
      await world.run({ name: 'it', nodeName: 'pi-1', tolerations: patience, metadata: { ownerReferences: [owner] } })
      await drop(world, ['pi-1'])
      await world.pass(30)
      t.same(await world.tainted(), [], 'a lost connection alone evicts no pod')
      await middle()
      let [taintedAt, leftAt]: (number | undefined)[] = []
      for (let second = 0; second < 600; second++) {
        await world.pass(1)
        if ((await world.tainted()).length > 0) taintedAt ??= second
        if ((await world.leaving()).includes('it')) leftAt ??= second
      }
      t.ok(taintedAt !== undefined && taintedAt <= 60, `tainted after ${taintedAt} s`)
      t.equal(leftAt === undefined || taintedAt === undefined ? undefined : leftAt - taintedAt, leavesAfter)
    },
  })
}

test('a day of 500 nodes: what happened in it is exactly what was done', async (t) => {
  const world = fleet(t)
  const tolerance = { nodeHeartbeatToleranceMs: 1_500_000 }
  const slowLink = { nodeMonitorGracePeriodMs: 1_500_000, nodeMonitorPeriodMs: 60_000, ...tolerance }
  await world.join(...names(500).map((name, i) => ({ name, labels: { 'bramble.dev/link': `attic-${i % 20}` } })))
  for (const name of names(500)) await world.run({ name: `web-${name}`, nodeName: name, tolerations })
  t.teardown(
    world.start(
      nodeLifecycleController(world, { ...defaultNodeLifecycleSettings, ...slowLink }),
      taintEvictionController(world),
      podCleanupController(world),
    ),
  )
  const stride = 300
  await world.pass(stride, stride)
  const writes = countedWrites(world, t)
  await world.pass(6 * 3600, stride)
  t.same(writes, { nodes: 0, pods: 0, events: 0 }, 'a quarter of it nothing happens, and nothing is written')

  await world.goodbye('pi-7', 'upgrade', 1800)
  await world.pass(1500, stride)
  await world.reboot('pi-7')
  const attic = names(500).filter((_, i) => i % 20 === 3)
  await drop(world, attic)
  await world.pass(600, stride)
  await world.revive(...attic)
  await drop(world, ['pi-100'])
  await world.pass(86_400 - 6 * 3600 - 2100, stride)
  t.same(await world.leaving(), ['web-pi-100'], 'one dead machine, one pod that moves')
  t.same(await world.tainted(), ['pi-100'])
  const lost = attic.length + 2
  t.ok(writes.nodes <= lost * 8, `${writes.nodes} writes of nodes for ${lost} that were away`)
  t.ok(writes.pods <= lost * 3 && writes.events <= lost * 6, `${writes.pods} of pods, ${writes.events} of events`)
})

function countedWrites(world: Fleet, t: Test): Record<'nodes' | 'pods' | 'events', number> {
  const counts = { nodes: 0, pods: 0, events: 0 }
  const stop = new AbortController()
  const count = async (resource: keyof typeof counts) => {
    for await (const _ of world.store.watch(resource, undefined, stop.signal)) counts[resource]++
  }
  const counting = [count('nodes'), count('pods'), count('events')]
  t.teardown(async () => {
    stop.abort()
    await Promise.all(counting)
  })
  return counts
}
