import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { ContainerOptions } from '../../runtime/runtime.ts'
import { type FakeRuntime, fakeRuntime } from '../../testing/fake-runtime.ts'
import type { PodNeed } from './dead-containers.ts'
import { type GarbagePolicy, podGarbageCollector } from './garbage-collector.ts'
import type { ImagePolicy } from './unused-images.ts'

const policy: GarbagePolicy = {
  containers: { minAgeMs: 0, maxPerPodContainer: 1, maxContainers: -1 },
  images: { highPercent: 85, lowPercent: 80, minAgeMs: 120_000, maxAgeMs: 0 },
}
const never = new AbortController().signal
const notEnough = async () => false

function world(
  t: Test,
  over: (runtime: FakeRuntime) => Partial<FakeRuntime> = () => ({}),
  { images = policy.images, needOf = () => 'needed' as PodNeed }: { images?: ImagePolicy; needOf?: () => PodNeed } = {},
) {
  const log = quietLog(t)
  const clock = fakeClock()
  const runtime = fakeRuntime(clock)
  const events: string[] = []
  const disk = { availableBytes: 500, capacityBytes: 1000, unread: undefined as string | undefined, isKnown: true }
  const sizes = new Map<string, number>()
  const imported = new Set<string>()
  const collector = podGarbageCollector(
    {
      runtime: {
        ...runtime,
        listImages: async () =>
          (await runtime.listImages()).map((image) => {
            const [tag = ''] = image.tags
            return { ...image, digests: imported.has(tag) ? [] : [`${tag}@sha256:1`], sizeBytes: sizes.get(tag) ?? 0 }
          }),
        ...over(runtime),
      },
      pods: { needOf },
      signals: {
        observe: async () => ({
          observed: [
            { signal: 'nodefs.available', available: 1000, capacity: 1000 },
            ...(disk.isKnown
              ? [{ signal: 'imagefs.available', available: disk.availableBytes, capacity: disk.capacityBytes } as const]
              : []),
          ],
          unread: [
            { signal: 'nodefs.inodesFree', because: 'no inodes' },
            ...(disk.unread === undefined ? [] : [{ signal: 'imagefs.available', because: disk.unread } as const]),
          ],
          stalls: [],
          imagesApart: false,
        }),
      },
      event: ({ reason, message }) => events.push(`${reason}: ${message}`),
      clock,
      log,
    },
    { ...policy, images },
  )
  const image = (name: string, sizeBytes: number) => {
    runtime.images.add(name)
    sizes.set(name, sizeBytes)
  }
  const start = () => {
    const stopping = new AbortController()
    const running = collector.run(stopping.signal)
    t.teardown(async () => {
      stopping.abort()
      await running
    })
  }
  return { clock, log, runtime, events, disk, image, imported, collector, start }
}

async function container(runtime: FakeRuntime, image: string, attempt = 0, script = 'exit 1') {
  const identity = {
    kind: 'container',
    podNamespace: 'default',
    podName: 'web',
    podUID: 'uid-1',
    containerName: 'main',
    attempt,
    specHash: '',
    gracePeriodSeconds: 30,
  } as const
  const options = { identity, image, command: ['sh', '-c', script] } as unknown as ContainerOptions
  const id = await runtime.createContainer(options)
  await runtime.startContainer(id)
  return id
}

test('when the disk of the images fills up, the longest unused go until it is enough', async (t) => {
  const { clock, runtime, disk, image, events, start } = world(t)
  for (const name of ['one:1', 'two:1', 'three:1', 'used:1']) image(name, 60)
  await container(runtime, 'used:1')
  start()
  await clock.advance(300_000)
  t.equal(runtime.images.size, 4, 'there is room')
  disk.availableBytes = 100
  await clock.advance(300_000)
  t.same([...runtime.images], ['three:1', 'used:1'])
  t.same(events, [])
})

test('too few removable images are reported, and again as a lasting failure', async (t) => {
  const { clock, runtime, disk, image, events, start } = world(t)
  image('one:1', 60)
  disk.availableBytes = 100
  start()
  await clock.advance(300_000)
  t.equal(runtime.images.size, 0)
  const text = (freed: number) =>
    `Failed to garbage collect required amount of images. Attempted to free 100 bytes, but only found ${freed} bytes eligible to free.`
  t.same(events, [`FreeDiskSpaceFailed: ${text(60)}`])
  await clock.advance(300_000)
  t.same(events.slice(1), [`FreeDiskSpaceFailed: ${text(0)}`, `ImageGCFailed: ${text(0)}`])
})

test('an image that cannot be removed holds up no other', async (t) => {
  const { runtime, image, collector } = world(t)
  image('one:1', 60)
  image('two:1', 30)
  runtime.failNext('removeImage', 'Failed', 'It is stuck')
  await t.rejects(collector.deleteUnusedImages(never, notEnough), {
    message: 'wanted to free all bytes, but freed 30 bytes space with errors in image deletion: It is stuck',
  })
  t.same([...runtime.images], ['one:1'])
  t.same(await collector.deleteUnusedImages(never, notEnough), { freedBytes: 60 })
})

test('on demand a young image stays too: it is about to be used', async (t) => {
  const { clock, runtime, image, collector } = world(t)
  await collector.deleteUnusedImages(never, notEnough)
  image('young:1', 60)
  t.same(await collector.deleteUnusedImages(never, notEnough), { freedBytes: 0 })
  await clock.advance(120_000)
  t.same(await collector.deleteUnusedImages(never, notEnough), { freedBytes: 60 })
  t.equal(runtime.images.size, 0)
})

test('every minute all but the last dead container of each goes', async (t) => {
  const { clock, runtime, events, image, start } = world(t)
  image('used:1', 1)
  for (const attempt of [0, 1, 2]) await container(runtime, 'used:1', attempt)
  await container(runtime, 'used:1', 3, 'sleep 1000')
  start()
  await clock.advance(60_000)
  t.same(
    runtime.containers.map(({ identity }) => identity.attempt),
    [2, 3],
  )
  for (const attempt of [4, 5]) await container(runtime, 'used:1', attempt)
  runtime.failNext('removeContainer', 'Failed', 'It is stuck')
  await clock.advance(60_000)
  t.same(events, ['ContainerGCFailed: Some dead containers were not removed: It is stuck'])
  runtime.setReachable(false)
  await clock.advance(600_000)
  t.equal(events.length, 1, 'an unreachable engine is reported by runtime-health.ts')
})

test('a removal that never ends delays other collections for ten minutes, and is reported', async (t) => {
  const { clock, runtime, events, image, collector, start } = world(t, (runtime) => ({
    removeContainer: (id) => (id === stuckID ? new Promise<never>(() => undefined) : runtime.removeContainer(id)),
    removeImage: (one) => (one.tags[0] === 'stuck:1' ? new Promise<never>(() => undefined) : runtime.removeImage(one)),
  }))
  for (const name of ['used:1', 'stuck:1', 'unused:1']) image(name, 60)
  const stuckID = await container(runtime, 'used:1', 0)
  await clock.advance(1_000)
  for (const attempt of [1, 2]) await container(runtime, 'used:1', attempt)
  start()
  await clock.advance(60_000)
  t.equal(runtime.containers.length, 3, 'the first removal has begun and does not end')
  const onDemand = collector.deleteUnusedImages(never, notEnough)
  onDemand.catch(() => undefined)
  await clock.advance(600_000)
  const attempts = () => runtime.containers.map(({ identity }) => identity.attempt)
  t.same(attempts(), [0, 2], 'the other dead container is removed')
  t.same(events, [
    `ContainerGCFailed: Some dead containers were not removed: Container ${stuckID} not removed within 600 s`,
  ])
  await clock.advance(600_000)
  await t.rejects(onDemand, /freed 60 bytes space with errors .*: Image stuck:1 not removed within 600 s/)
  t.same([...runtime.images], ['used:1', 'stuck:1'])
})

test('a stop waits for no list of images', async (t) => {
  const { clock, collector } = world(t, () => ({ imagesInUse: () => new Promise(() => undefined) }))
  const stopping = new AbortController()
  let isStopped = false
  void collector.run(stopping.signal).then(() => {
    isStopped = true
  })
  await clock.settle()
  stopping.abort()
  await clock.settle()
  t.ok(isStopped)
})

test('at a high threshold of 100 percent no image goes for its space', async (t) => {
  const { clock, runtime, disk, image, start } = world(t, undefined, { images: { ...policy.images, highPercent: 100 } })
  image('one:1', 60)
  disk.availableBytes = 0
  start()
  await clock.advance(300_000)
  t.equal(runtime.images.size, 1)
})

test('an image that is unused for longer than its limit goes whatever space is free', async (t) => {
  const images = { ...policy.images, maxAgeMs: 600_000 }
  const { clock, log, runtime, events, image, start } = world(t, undefined, { images })
  image('one:1', 60)
  start()
  await clock.advance(600_000)
  t.equal(runtime.images.size, 1, 'observed for no longer than the limit')
  await clock.advance(300_000)
  t.equal(runtime.images.size, 0)
  t.same(events, [])
  t.match(log.lines, [
    { level: 'info', message: 'Unused images removed', facts: { freedBytes: 60, images: ['one:1'] } },
  ])
})

test('what is removed is logged, and nothing when nothing was', async (t) => {
  const { clock, log, runtime, image, disk, start } = world(t)
  for (const name of ['one:1', 'used:1']) image(name, 100)
  for (const attempt of [0, 1, 2]) await container(runtime, 'used:1', attempt)
  disk.availableBytes = 100
  start()
  await clock.advance(60_000)
  t.same(
    log.lines.map(({ message, facts }) => ({ message, facts })),
    [{ message: 'Dead containers removed', facts: { removed: 2 } }],
  )
  runtime.failNext('removeContainer', 'Failed', 'It is stuck')
  await container(runtime, 'used:1', 3)
  await clock.advance(60_000)
  t.equal(log.messages('info').length, 1, 'the only removal failed')
  await clock.advance(180_000)
  t.match(log.lines.slice(-2), [
    { message: 'Disk of the images is filling up', facts: { usedPercent: 90, highPercent: 85, wantedBytes: 100 } },
    { message: 'Unused images removed', facts: { freedBytes: 100, images: ['one:1'] } },
  ])
})

test('enough is enough: exactly the bytes wanted are not a failure', async (t) => {
  const { clock, log, runtime, events, image, disk, start } = world(t)
  for (const name of ['one:1', 'two:1']) image(name, 100)
  disk.availableBytes = 100
  start()
  await clock.advance(300_000)
  t.same([...runtime.images], ['two:1'])
  t.same([events, log.messages('warn')], [[], []])
})

test('a disk that cannot be read is a failure with the reason, reported when it lasts', async (t) => {
  const { clock, log, events, disk, start } = world(t)
  disk.isKnown = false
  start()
  await clock.advance(300_000)
  t.same(events, [], 'shortly after a start the disk may be unknown')
  t.match(log.lines, [
    { level: 'warn', message: 'Unused images not removed', facts: { error: { message: /reported/ } } },
  ])
  const failed = (message: string) => `ImageGCFailed: The disk of the images is not known: ${message}`
  await clock.advance(300_000)
  t.same(events, [failed('Docker has not reported its root directory yet')])
  disk.unread = 'statfs timed out'
  await clock.advance(300_000)
  t.same(events.slice(1), [failed('statfs timed out')])
  disk.isKnown = true
  disk.capacityBytes = 0
  await clock.advance(300_000)
  t.same(events.slice(2), ['ImageGCFailed: invalid capacity 0 on image filesystem'])
  disk.capacityBytes = 1000
  await clock.advance(300_000)
  disk.capacityBytes = 0
  await clock.advance(300_000)
  t.equal(events.length, 3, 'after a success the next failure is the first one again')
})

test('an unreachable engine is a detail of the log', async (t) => {
  const { clock, log, events, runtime, start } = world(t)
  runtime.setReachable(false)
  start()
  await clock.advance(300_000)
  t.same(events, [])
  t.same(log.messages('warn'), [])
  t.same(log.messages('debug'), [
    'Cannot list images',
    ...Array.from({ length: 5 }, () => 'Cannot list dead containers'),
    'Cannot list images',
  ])
  t.ok(log.lines.every(({ facts }) => facts['error'] instanceof Error))
})

test('dead containers of pods that have ended go on demand, and no longer when the request is withdrawn', async (t) => {
  const { runtime, image, collector, clock, start } = world(t, undefined, { needOf: () => 'over' })
  image('used:1', 1)
  for (const attempt of [0, 1]) await container(runtime, 'used:1', attempt)
  start()
  await clock.advance(60_000)
  t.equal(runtime.containers.length, 1, 'the last one of each stays for its log')
  await collector.deleteUnusedContainers(AbortSignal.abort())
  t.equal(runtime.containers.length, 1)
  await collector.deleteUnusedContainers(never)
  t.equal(runtime.containers.length, 0)
})

const removal = (name: string, bytes: number) =>
  `ImportedImageRemoved: Removing unused image ${name} (${bytes} bytes), which no registry is known to have: import it again for pods that need it`

test('an image that no registry has goes last, with an Event before', async (t) => {
  const { clock, runtime, events, image, imported, disk, start } = world(t)
  for (const name of ['mine:1', 'one:1', 'two:1']) image(name, 60)
  imported.add('mine:1')
  disk.availableBytes = 100
  start()
  await clock.advance(300_000)
  t.same([...runtime.images], ['mine:1'], 'the others were enough')
  t.same(events, [])
  runtime.failNext('removeImage', 'Failed', 'It is stuck')
  await clock.advance(300_000)
  t.equal(events[0], removal('mine:1', 60), 'also where the removal fails then')
})

test('on demand an image that no registry has goes only if the others were not enough', async (t) => {
  const { runtime, events, image, imported, collector } = world(t)
  for (const name of ['mine:1', 'one:1']) image(name, 60)
  imported.add('mine:1')
  t.same(await collector.deleteUnusedImages(never, async () => runtime.images.size === 1), { freedBytes: 60 })
  t.same([[...runtime.images], events], [['mine:1'], []])
  t.same(await collector.deleteUnusedImages(never, notEnough), { freedBytes: 60 })
  t.same([[...runtime.images], events], [[], [removal('mine:1', 60)]])
})
