import { type Test, test } from 'tap'
import type { Pod } from '../../api/pod.ts'
import { aPod } from '../../api/testing/builders.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { agentBoard } from '../assembly/board.ts'
import { fakeHost } from '../testing/fake-host.ts'
import type { ClaimSpace } from './claim-space.ts'
import type { Ending } from './evictable-pods.ts'
import { type EvictionSettings, evictionManager } from './eviction-manager.ts'
import type { StallSignal } from './observations.ts'
import { defaultEvictionHard, parseThresholds } from './thresholds.ts'

const mib = 2 ** 20

type Running = { readonly pod: Pod; readonly memory?: number; readonly disk?: number; readonly endsAfterMs?: number }

type Faults = { readonly usage?: Error; readonly images?: Error; readonly hangs?: true }

/** Memory comes back when a pod has ended; the disk when garbage is collected. */
function machine(
  t: Test,
  {
    running = [],
    garbageBytes = 0,
    faults = {},
    claims = [],
    ...settings
  }: Partial<EvictionSettings> & {
    running?: Running[]
    garbageBytes?: number
    faults?: Faults
    claims?: readonly ClaimSpace[]
  } = {},
) {
  const [clock, log, host] = [fakeClock(), quietLog(t), fakeHost()]
  const here = new Map(running.map((one) => [one.pod.metadata.uid ?? '', one]))
  const ended = new Map<string, Ending & { readonly atMs: number; goneAtMs?: number }>()
  const events: string[] = []
  const evictions: string[] = []
  const collected: string[] = []
  /** What `isEnough` gave an image collection at its end. */
  const enough: boolean[] = []
  const asked: string[] = []
  const world = { changes: 0, free: 0, looks: 0 }
  const board = agentBoard()
  board.pressures.onChange(() => world.changes++)
  const manager = evictionManager(
    {
      signals: {
        observe() {
          world.looks++
          return host.observe()
        },
      },
      clock,
      log,
      writes: board,
      claims: async () => claims,
      event: ({ reason, message }) => events.push(`${reason}: ${message}`),
      evicted: (signal) => evictions.push(signal),
      pods: {
        active: () => [...here].filter(([uid]) => !ended.has(uid)).map(([, { pod }]) => pod),
        async stopped(uid, signal) {
          const { atMs = 0 } = ended.get(uid) ?? {}
          await clock.sleep(atMs + (here.get(uid)?.endsAfterMs ?? 1_000) - clock.monotonicMs(), signal)
        },
        endPod(uid, ending) {
          ended.set(uid, { ...ending, atMs: clock.monotonicMs() })
          const { endsAfterMs = 1_000, memory = 0 } = here.get(uid) ?? {}
          void clock.sleep(endsAfterMs).then(() => {
            world.free += memory
            host.leave('memory.available', world.free)
          })
        },
      },
      usage: {
        async podUsage() {
          asked.push('memory')
          if (faults.usage !== undefined) throw faults.usage
          return [...here].map(([uid, { memory = 0 }]) => ({
            uid,
            containers: [{ name: 'main', memoryWorkingSetBytes: memory, pids: 1 }],
          }))
        },
        async podDiskUsage(maxAgeMs) {
          asked.push(`disk of the last ${maxAgeMs} ms`)
          return [...here].map(([uid, { disk = 0 }]) => ({
            uid,
            containers: [],
            volumes: [{ name: 'scratch', inMemory: false, usedBytes: disk, inodesUsed: 1 }],
          }))
        },
      },
      reclaim: {
        deleteUnusedContainers: async () => void collected.push('containers'),
        async deleteUnusedImages(_, isEnough) {
          collected.push('images')
          if (faults.hangs) await new Promise(() => undefined)
          if (faults.images !== undefined) throw faults.images
          if (garbageBytes > 0) host.leave('nodefs.available', garbageBytes)
          enough.push(await isEnough())
          return { freedBytes: garbageBytes }
        },
      },
    },
    {
      thresholds: parseThresholds(defaultEvictionHard).thresholds,
      transitionMs: 300_000,
      maxPodGraceSeconds: 0,
      stallWarnings: new Map<StallSignal, number>(),
      ...settings,
    },
  )
  const stopping = new AbortController()
  const done = manager.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await done
  })
  const leave = (bytes: number) => {
    world.free = bytes
    host.leave('memory.available', bytes)
  }
  return {
    clock,
    log,
    host,
    board,
    pressures: board.pressures.get,
    world,
    ended,
    events,
    evictions,
    collected,
    enough,
    asked,
    leave,
    done,
    stopping,
  }
}

const uidOf = (name: string) => `uid-of-${name}`

test('a machine with enough of everything is under no pressure, and reports it after the first reading', async (t) => {
  const { clock, pressures, world } = machine(t)
  t.equal(pressures(), undefined)
  await clock.advance(60_000)
  t.same(pressures(), [])
  t.equal(world.changes, 1)
})

test('memory that runs short shows at the next look and stays shown for five minutes after it was last short', async (t) => {
  const { clock, pressures, world, log, leave } = machine(t)
  await clock.settle()
  leave(99 * mib)
  await clock.advance(10_000)
  t.same(pressures(), ['MemoryPressure'])
  leave(500 * mib)
  await clock.advance(299_000)
  t.same(pressures(), ['MemoryPressure'])
  await clock.advance(1_000)
  t.same(pressures(), [])
  t.equal(world.changes, 3)
  t.same(log.messages('warn'), ['Node is under pressure'])
  t.same(log.messages('info'), ['Node is no longer under pressure'])
})

test('a disk that cannot be read is logged once, and hides no shortage of memory', async (t) => {
  const { clock, host, pressures, log } = machine(t)
  host.hide('nodefs.available', 'EIO: i/o error')
  host.leave('memory.available', 1)
  await clock.advance(60_000)
  t.same(pressures(), ['MemoryPressure'])
  t.same(log.messages('warn').toSorted(), ['Node is under pressure', 'Some signals cannot be read'])
})

test('the pod with the largest excess is evicted at once, and no other if that was enough', async (t) => {
  const { clock, ended, leave, events, evictions } = machine(t, {
    running: [
      { pod: aPod({ name: 'modest', requests: { memory: '64Mi' } }), memory: 60 * mib },
      { pod: aPod({ name: 'greedy' }), memory: 400 * mib },
    ],
  })
  await clock.settle()
  leave(50 * mib)
  await clock.advance(60_000)
  t.same([...ended.keys()], [uidOf('greedy')])
  const message =
    'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ' +
    'Container main was using 400Mi, request is 0, has larger consumption of memory. '
  t.match(ended.get(uidOf('greedy')), {
    reason: 'Evicted',
    message,
    gracePeriodSeconds: 1,
    event: 'Warning',
    disruption: message,
  })
  t.same(events, ['EvictionThresholdMet: Attempting to reclaim memory'])
  t.same(evictions, ['memory.available'], 'counted by its signal')
})

test('while a pod stops no other is chosen; after thirty seconds the next one is evicted', async (t) => {
  const { clock, ended, leave, log } = machine(t, {
    running: [
      { pod: aPod({ name: 'stuck' }), memory: 400 * mib, endsAfterMs: 100_000 },
      { pod: aPod({ name: 'next' }), memory: 200 * mib },
    ],
  })
  await clock.settle()
  leave(50 * mib)
  await clock.advance(10_000)
  t.same([...ended.keys()], [uidOf('stuck')])
  await clock.advance(29_000)
  t.equal(ended.size, 1)
  await clock.advance(2_000)
  t.same([...ended.keys()], [uidOf('stuck'), uidOf('next')])
  t.ok(log.messages('warn').includes('Evicted pod does not end'))
})

test('one pod is not enough: the next goes as soon as the first is gone', async (t) => {
  const { clock, ended, leave } = machine(t, {
    running: [
      { pod: aPod({ name: 'first' }), memory: 40 * mib },
      { pod: aPod({ name: 'second' }), memory: 30 * mib },
      { pod: aPod({ name: 'third' }), memory: 20 * mib },
    ],
  })
  await clock.settle()
  leave(40 * mib)
  await clock.advance(15_000)
  t.same([...ended.keys()], [uidOf('first'), uidOf('second')])
})

test('what the machine needs stays, whatever it uses', async (t) => {
  const critical = [
    aPod({ name: 'static', annotations: { 'kubernetes.io/config.source': 'file' } }),
    aPod({ name: 'mirror', annotations: { 'kubernetes.io/config.mirror': 'x' } }),
    aPod({ name: 'node-critical', priority: 2_000_001_000 }),
    aPod({ name: 'cluster-critical', priority: 2_000_000_000 }),
  ]
  const { clock, ended, leave, log } = machine(t, { running: critical.map((pod) => ({ pod, memory: 900 * mib })) })
  await clock.settle()
  leave(1)
  await clock.advance(60_000)
  t.equal(ended.size, 0)
  t.same(log.messages('warn'), ['Node is under pressure'], 'an eviction without candidates is not a failure')
})

test('for a soft threshold a pod has its own time, up to the most that is allowed', async (t) => {
  const thresholds = parseThresholds({ 'memory.available': '100Mi' }).thresholds.map((one) => ({
    ...one,
    graceMs: 30_000,
  }))
  const { clock, ended, leave } = machine(t, {
    thresholds,
    maxPodGraceSeconds: 60,
    running: [{ pod: aPod({ name: 'slow', spec: { terminationGracePeriodSeconds: 45 } }), memory: 400 * mib }],
  })
  await clock.settle()
  leave(99 * mib)
  await clock.advance(39_000)
  t.equal(ended.size, 0, 'its grace period is not over')
  await clock.advance(2_000)
  t.match(ended.get(uidOf('slow')), { gracePeriodSeconds: 45 })
})

test('garbage goes before any pod', async (t) => {
  const { clock, ended, host, collected, enough, events, pressures } = machine(t, {
    garbageBytes: 900 * mib,
    running: [{ pod: aPod({ name: 'writer' }), disk: 500 * mib }],
  })
  await clock.settle()
  host.leave('nodefs.available', 50 * mib)
  await clock.advance(20_000)
  t.same(collected, ['containers', 'images'])
  t.same(enough, [true], 'these images suffice')
  t.equal(ended.size, 0)
  t.same(events, ['EvictionThresholdMet: Attempting to reclaim ephemeral-storage'])
  t.same(pressures(), ['DiskPressure'])
})

test('where there is no garbage the pod with most on the disk goes', async (t) => {
  const { clock, ended, host } = machine(t, {
    running: [
      { pod: aPod({ name: 'reader' }), disk: 5 },
      { pod: aPod({ name: 'writer' }), disk: 500 * mib },
    ],
  })
  await clock.settle()
  host.leave('nodefs.available', 50 * mib)
  await clock.advance(10_000)
  t.same([...ended.keys()], [uidOf('writer')])
})

test('of a disk without images nothing can be collected', async (t) => {
  const { clock, host, collected } = machine(t)
  host.separateImages()
  await clock.settle()
  host.leave('nodefs.available', 50 * mib)
  await clock.advance(10_000)
  t.same(collected, [])
  host.leave('imagefs.available', 50 * mib)
  host.leave('nodefs.available', 900 * mib)
  await clock.advance(10_000)
  t.same(collected, ['containers', 'images'])
})

test('nothing is removed from a full disk before it is known whether images are on it', async (t) => {
  const { clock, host, collected, ended, pressures, log, leave } = machine(t, {
    running: [{ pod: aPod({ name: 'writer' }), disk: 500 * mib }],
  })
  host.hideImages()
  host.leave('nodefs.available', 50 * mib)
  await clock.advance(60_000)
  t.same(pressures(), ['DiskPressure'], 'the node shows it')
  t.same([collected, ended.size], [[], 0])
  t.equal(log.messages('warn').filter((message) => /^Nothing is removed from the full disk/.test(message)).length, 1)
  leave(50 * mib)
  await clock.advance(10_000)
  t.match(ended.get(uidOf('writer')), { message: /low on resource: memory/ }, 'short memory does not wait')
})

test('images with a disk of their own stay when the data of the agent fills its disk before Docker answers', async (t) => {
  const { clock, host, collected, ended } = machine(t, {
    running: [{ pod: aPod({ name: 'writer' }), disk: 500 * mib }],
  })
  host.hideImages()
  host.leave('nodefs.available', 50 * mib)
  await clock.advance(10_000)
  host.separateImages()
  await clock.advance(10_000)
  t.same([collected, [...ended.keys()]], [[], [uidOf('writer')]])
})

test('the message names what was available when the threshold was met, not what is after images were removed', async (t) => {
  const { clock, host, ended } = machine(t, {
    running: [{ pod: aPod({ name: 'writer' }), disk: 500 * mib }],
    garbageBytes: 20 * mib,
  })
  await clock.settle()
  host.leave('nodefs.available', 10 * mib)
  await clock.advance(10_000)
  t.match(ended.get(uidOf('writer')), { message: /available: 10Mi\. / })
})

test('near a threshold the machine is looked at every second', async (t) => {
  const { clock, leave, pressures } = machine(t)
  await clock.settle()
  leave(109 * mib)
  await clock.advance(10_000)
  leave(99 * mib)
  await clock.advance(1_000)
  t.same(pressures(), ['MemoryPressure'])
})

test('memory that falls fast is looked at every second', async (t) => {
  const { clock, leave, pressures } = machine(t)
  leave(900 * mib)
  await clock.settle()
  leave(450 * mib)
  await clock.advance(10_000)
  leave(99 * mib)
  await clock.advance(1_000)
  t.same(pressures(), ['MemoryPressure'])
})

test('a stall sets pressure where configured, and evicts no pod', async (t) => {
  const { clock, host, pressures, ended } = machine(t, {
    stallWarnings: new Map([['memory.full', 20]]),
    running: [{ pod: aPod({ name: 'a' }), memory: 400 * mib }],
  })
  await clock.settle()
  host.stall('memory.full', 19)
  host.stall('io.full', 99)
  await clock.advance(10_000)
  t.same(pressures(), [])
  host.stall('memory.full', 20)
  await clock.advance(10_000)
  t.same(pressures(), ['MemoryPressure'])
  t.equal(ended.size, 0)
})

test('continued attempts are recorded once a minute', async (t) => {
  const { clock, leave, events } = machine(t)
  await clock.settle()
  leave(1)
  await clock.advance(65_000)
  t.equal(events.length, 1)
  await clock.advance(10_000)
  t.equal(events.length, 2)
})

const warned = (log: { messages(level: 'warn'): readonly string[] }, message: string) =>
  log.messages('warn').filter((one) => one === message).length

test('for memory only the memory of pods is read and nothing is collected; for a disk only the disk use', async (t) => {
  const { clock, asked, collected, leave } = machine(t, { running: [{ pod: aPod(), memory: 900 * mib }] })
  await clock.settle()
  leave(50 * mib)
  await clock.advance(10_000)
  t.same([asked, collected], [['memory'], []])
  const disk = machine(t, { running: [{ pod: aPod(), disk: 900 * mib }] })
  await disk.clock.settle()
  disk.host.leave('nodefs.available', 50 * mib)
  await disk.clock.advance(10_000)
  t.same(disk.asked, ['disk of the last 15000 ms'])
})

test('a disk is not collected again and again beside short memory, which has priority', async (t) => {
  const { clock, host, collected, ended, leave } = machine(t, { running: [{ pod: aPod(), memory: 900 * mib }] })
  await clock.settle()
  host.leave('nodefs.available', 50 * mib)
  leave(50 * mib)
  await clock.advance(10_000)
  t.match(ended.get(uidOf('a-pod')), { message: /low on resource: memory/ })
  t.same(collected, [])
})

test('a failed collection is logged once a minute, and a pod is evicted in its place', async (t) => {
  const { clock, host, log, ended } = machine(t, {
    faults: { images: new Error('Docker is gone') },
    running: [{ pod: aPod({ name: 'writer' }), disk: 500 * mib, memory: 900 * mib }],
  })
  await clock.settle()
  host.leave('nodefs.available', 50 * mib)
  await clock.advance(10_000)
  t.same([...ended.keys()], [uidOf('writer')])
  t.equal(warned(log, 'Disk not freed'), 1)
  await clock.advance(59_000)
  t.equal(warned(log, 'Disk not freed'), 1)
  await clock.advance(11_000)
  t.equal(warned(log, 'Disk not freed'), 2)
})

test('a collection that hangs is abandoned after a minute, and a pod is evicted in its place', async (t) => {
  const { clock, host, log, ended } = machine(t, {
    faults: { hangs: true },
    running: [{ pod: aPod({ name: 'writer' }), disk: 500 * mib, memory: 900 * mib }],
  })
  await clock.settle()
  host.leave('nodefs.available', 50 * mib)
  await clock.advance(69_000)
  t.equal(ended.size, 0)
  await clock.advance(2_000)
  t.same([...ended.keys()], [uidOf('writer')])
  t.equal(warned(log, 'Disk not freed'), 1)
})

test('usage that cannot be read is logged, and the machine is looked at again', async (t) => {
  const { clock, log, ended, leave, pressures } = machine(t, {
    faults: { usage: new Error('EIO') },
    running: [{ pod: aPod(), memory: 900 * mib }],
  })
  await clock.settle()
  leave(50 * mib)
  await clock.advance(10_000)
  t.equal(log.lines.filter(({ facts }) => facts.error instanceof Error).length, 1)
  t.equal(ended.size, 0)
  leave(900 * mib)
  await clock.advance(310_000)
  t.same(pressures(), [])
})

test('what was freed must cover the minimum reclaim, else a pod is evicted', async (t) => {
  const thresholds = parseThresholds({ 'nodefs.available': '100Mi' }).thresholds.map((one) => ({
    ...one,
    minimumReclaim: { quantity: 200 * mib, family: 'binary' } as const,
  }))
  for (const [garbageBytes, evicted] of [
    [299 * mib, 1],
    [300 * mib, 0],
  ] as const) {
    const { clock, host, ended } = machine(t, { thresholds, garbageBytes, running: [{ pod: aPod(), disk: 1 }] })
    await clock.settle()
    host.leave('nodefs.available', 50 * mib)
    await clock.advance(10_000)
    t.equal(ended.size, evicted, `${garbageBytes} bytes freed`)
  }
})

test('for a soft threshold the shorter of the pod’s own time and the most allowed counts', async (t) => {
  const soft = parseThresholds({ 'memory.available': '100Mi' }).thresholds.map((one) => ({ ...one, graceMs: 0 }))
  const graceOf = async (spec: { readonly terminationGracePeriodSeconds?: number | undefined }) => {
    const { terminationGracePeriodSeconds: _, ...others } = aPod().spec
    const pod = { ...aPod(), spec: { ...others, ...spec } } as Pod
    const { clock, ended, leave } = machine(t, {
      thresholds: soft,
      maxPodGraceSeconds: 20,
      running: [{ pod, memory: 400 * mib }],
    })
    await clock.settle()
    leave(50 * mib)
    await clock.advance(10_000)
    return ended.get(uidOf('a-pod'))?.gracePeriodSeconds
  }
  t.equal(await graceOf({ terminationGracePeriodSeconds: 45 }), 20)
  t.equal(await graceOf({ terminationGracePeriodSeconds: 5 }), 5)
  t.equal(await graceOf({}), 20)
})

test('no failure is reported for a pod that ends in time, nor for one that is no longer waited for', async (t) => {
  const prompt = machine(t, { running: [{ pod: aPod(), memory: 900 * mib, endsAfterMs: 29_999 }] })
  await prompt.clock.settle()
  prompt.leave(50 * mib)
  await prompt.clock.advance(60_000)
  t.equal(warned(prompt.log, 'Evicted pod does not end'), 0)
  t.equal(prompt.clock.sleepers, 1, 'no wait is left over')
  const stopped = machine(t, { running: [{ pod: aPod(), memory: 900 * mib, endsAfterMs: 100_000 }] })
  await stopped.clock.settle()
  stopped.leave(50 * mib)
  await stopped.clock.advance(15_000)
  t.equal(stopped.ended.size, 1)
  stopped.stopping.abort()
  await stopped.done
  t.equal(warned(stopped.log, 'Evicted pod does not end'), 0)
})

test('a stall of memory shows as memory pressure and one of a disk as disk pressure, looked at every second', async (t) => {
  const { clock, host, pressures, events } = machine(t, {
    stallWarnings: new Map([
      ['memory.full', 20],
      ['io.full', 20],
    ] as const),
    transitionMs: 1_000,
  })
  await clock.settle()
  host.stall('io.full', 20)
  await clock.advance(10_000)
  t.same(pressures(), ['DiskPressure'])
  host.stall('io.full', 0)
  host.stall('memory.full', 99)
  await clock.advance(1_000)
  t.same(pressures(), ['MemoryPressure'])
  host.stall('memory.full', 0)
  await clock.advance(1_000)
  t.same(pressures(), [])
  t.same(events, [], 'a stall meets no threshold')
})

test('far from every threshold, and while one is in force, the machine is looked at every ten seconds', async (t) => {
  const { clock, leave, pressures, world } = machine(t)
  await clock.settle()
  leave(950 * mib)
  await clock.advance(10_000)
  leave(99 * mib)
  await clock.advance(9_000)
  t.same(pressures(), [])
  await clock.advance(1_000)
  t.same(pressures(), ['MemoryPressure'])
  const { looks } = world
  await clock.advance(20_000)
  t.equal(world.looks - looks, 2)
})

test('unreadable signals are logged when they change, and when they can be read again', async (t) => {
  const { clock, host, log } = machine(t)
  await clock.advance(20_000)
  t.same(log.lines, [], 'a readable machine is not mentioned')
  host.hide('nodefs.available', 'EIO')
  await clock.advance(20_000)
  host.hide('imagefs.available', 'ENOENT')
  await clock.advance(20_000)
  t.equal(warned(log, 'Some signals cannot be read'), 2)
  t.same(log.messages('info'), [])
  host.show()
  await clock.advance(20_000)
  t.same(log.messages('info'), ['All signals can be read again'])
})

test('a pressure is logged once with the signals that belong to it, however long it lasts', async (t) => {
  const { clock, log, leave } = machine(t)
  await clock.settle()
  leave(50 * mib)
  await clock.advance(600_000)
  const lines = log.lines.filter(({ message }) => message === 'Node is under pressure')
  t.equal(lines.length, 1)
  t.match(lines[0]?.facts, { pressure: 'MemoryPressure', observed: [{ signal: 'memory.available' }] })
  t.equal((lines[0]?.facts.observed as readonly unknown[] | undefined)?.length, 1)
})

test('whether images have a disk of their own is published, and unknown again when it is', async (t) => {
  const { clock, host, board, log } = machine(t)
  await clock.settle()
  t.equal(board.imagesApart.get(), false)
  host.separateImages()
  await clock.advance(10_000)
  t.equal(board.imagesApart.get(), true)
  host.leave('nodefs.available', 1)
  for (let round = 0; round < 2; round++) {
    host.hideImages()
    await clock.advance(20_000)
    t.equal(board.imagesApart.get(), undefined)
    host.separateImages()
    await clock.advance(20_000)
  }
  t.equal(log.messages('warn').filter((message) => message.startsWith('Nothing is removed')).length, 2)
})

test('log lines name the pod, the threshold, the pressure and the signals they are about', async (t) => {
  const { clock, host, log, leave } = machine(t, {
    running: [{ pod: aPod({ name: 'stuck' }), memory: 900 * mib, endsAfterMs: 31_000 }],
  })
  const factsOf = (message: string) => log.lines.find((line) => line.message === message)?.facts
  await clock.settle()
  host.hide('imagefs.available', 'ENOENT')
  host.stall('io.full', 7)
  leave(50 * mib)
  await clock.advance(400_000)
  t.match(factsOf('Pod evicted'), {
    pod: 'default/stuck',
    threshold: 'memory.available',
    gracePeriodSeconds: 1,
    why: /low on resource: memory/,
  })
  t.same(factsOf('Evicted pod does not end'), { podUID: uidOf('stuck') })
  t.match(factsOf('Node is under pressure'), { stalls: [{ signal: 'io.full', percent: 7 }] })
  t.same(factsOf('Node is no longer under pressure'), { pressure: 'MemoryPressure' })
  t.same(factsOf('Some signals cannot be read'), {
    unread: [{ signal: 'imagefs.available', because: 'ENOENT' }],
  })
})

test('without pods nothing is measured', async (t) => {
  const { clock, asked, leave } = machine(t)
  await clock.settle()
  leave(50 * mib)
  await clock.advance(30_000)
  t.same(asked, [])
})

test('how fast memory falls is measured since the last look, also when the agent has run for long', async (t) => {
  const { clock, leave, pressures } = machine(t)
  leave(900 * mib)
  await clock.advance(60_000)
  leave(450 * mib)
  await clock.advance(10_000)
  leave(99 * mib)
  await clock.advance(1_000)
  t.same(pressures(), ['MemoryPressure'])
})

test('the claims that fill the disk are named once before pods are evicted for it', async (t) => {
  const claims = [
    { claim: 'default/db', usedBytes: 900 * mib },
    { claim: 'default/small', usedBytes: 1 },
  ]
  const running = [{ pod: aPod({ name: 'web' }), disk: 5 }, { pod: aPod({ name: 'db' }) }]
  const { clock, ended, events, host } = machine(t, { running, claims })
  await clock.settle()
  host.leave('nodefs.available', 50 * mib)
  await clock.advance(10_000)
  t.equal(ended.size, 1)
  t.match(events, [
    /^EvictionThresholdMet/,
    /^VolumesFillDisk: Volumes of claims fill the disk .* default\/db \(900 MiB\)\. No/,
  ])
  host.leave('nodefs.available', 900 * mib)
  host.leave('memory.available', 1)
  await clock.advance(120_000)
  t.equal(events.filter((text) => text.startsWith('VolumesFillDisk')).length, 1, 'not for memory')
})
