import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'tap'
import { dockerRuntime } from '../agent/adapters/docker/docker-runtime.ts'
import { labelsOf } from '../agent/adapters/docker/labels.ts'
import { hostSignals } from '../agent/adapters/kernel/host-signals.ts'
import type { PodNeed } from '../agent/pods/garbage/dead-containers.ts'
import { podGarbageCollector } from '../agent/pods/garbage/garbage-collector.ts'
import type { ImagePolicy } from '../agent/pods/garbage/unused-images.ts'
import { sandboxImage } from '../agent/pods/images/sandbox-image.ts'
import { fakeClock } from '../daemon/testing/fake-clock.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { startDockerd, type TestDockerd, whyNoDockerd } from './support/dockerd.ts'
import { eventually } from './support/pods.ts'
import { busyboxLayer, fillerLayer } from './support/registry.ts'
import { smallDisk } from './support/small-disk.ts'

const megabyte = 1024 * 1024
const never = new AbortController().signal
const minutes = 60_000

test('unused objects are removed from a small disk, and nothing else', {
  skip: whyNoDockerd(),
}, async (t) => {
  const dataRoot = await smallDisk(t, 160)
  const dockerd = await startDockerd(t, { dataRoot })
  const { docker } = dockerd
  const runtime = dockerRuntime({ socketPath: dockerd.socket, nodeName: 'pi-01' })
  const signals = hostSignals({ root: '/', dataDirectory: tmpdir(), imageDirectory: () => dataRoot })
  const clock = fakeClock()
  let calls = 0
  const counted =
    <A extends readonly unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      calls++
      try {
        return await call(...args)
      } finally {
        calls--
      }
    }
  // A call sleeps too, until its deadline.
  const idle = () => eventually(() => calls === 0 && clock.sleepers === 1)
  const passOfImages = async (count: number) => {
    for (let minute = 0; minute < count; minute++) {
      await idle()
      await clock.advance(minutes)
    }
    await idle()
  }
  const eventTexts: string[] = []
  /** Events of images that no registry has: all of these were imported. */
  const named: string[] = []
  const needs = new Map<string, PodNeed>()
  const used = async () => {
    const { observed } = await signals.observe()
    const { available = 0, capacity = 1 } = observed.find(({ signal }) => signal === 'imagefs.available') ?? {}
    return { available, percent: 100 - Math.floor((available * 100) / capacity) }
  }
  const tags = async () =>
    (await docker.listImages()).flatMap(({ RepoTags }) => RepoTags ?? []).filter((tag) => !tag.includes('pause'))
  const names = async () =>
    (await docker.listContainers({ all: true })).map(({ Labels, Names: [name = ''] }) => Labels['name'] ?? name).sort()
  const container = async (name: string, image: string, labels: { [name: string]: string }, command = ['true']) => {
    const made = await docker.createContainer({
      Image: image,
      Cmd: command,
      Labels: { ...labels, name },
      HostConfig: { NetworkMode: 'none' },
    })
    await made.start()
    if (command[0] === 'true') await made.wait()
  }
  const ours = (podUID: string, attempt: number, nodeName = 'pi-01') =>
    labelsOf(nodeName, {
      kind: 'container',
      podNamespace: 'default',
      podName: podUID,
      podUID,
      containerName: 'main',
      attempt,
      specHash: '',
      gracePeriodSeconds: 1,
    })

  const busybox = await busyboxLayer()
  const make = (name: string, bytes: number) =>
    importImage(dockerd, name, [busybox.subarray(0, -1024), fillerLayer(bytes)])
  await make('test/used:1', megabyte)
  await make('test/byhand:1', megabyte)
  await importImage(dockerd, sandboxImage, [fillerLayer(1000)])
  for (const name of ['a', 'b', 'c', 'd', 'e']) await make(`test/${name}:1`, 16 * megabyte)
  await docker.getImage('test/a:1').tag({ repo: 'test/a', tag: 'again' })
  const full = await used()
  t.ok(full.percent > 60, `the disk is ${full.percent} % full`)

  const collect = (images: ImagePolicy) => {
    const collector = podGarbageCollector(
      {
        runtime: {
          listContainers: counted(runtime.listContainers),
          removeContainer: counted(runtime.removeContainer),
          listImages: counted(runtime.listImages),
          imagesInUse: counted(runtime.imagesInUse),
          removeImage: counted(runtime.removeImage),
        },
        pods: { needOf: (uid) => needs.get(uid) ?? 'needed' },
        signals: { ...signals, observe: counted(signals.observe) },
        event: ({ reason, message }) =>
          (reason === 'ImportedImageRemoved' ? named : eventTexts).push(`${reason}: ${message}`),
        clock,
        log: quietLog(t),
      },
      { containers: { minAgeMs: 0, maxPerPodContainer: 1, maxContainers: -1 }, images },
    )
    const stopping = new AbortController()
    const running = collector.run(stopping.signal)
    const stop = async () => {
      stopping.abort()
      await running
    }
    t.teardown(stop)
    return { ...collector, stop }
  }
  const marks = { highPercent: full.percent, lowPercent: full.percent - 15, minAgeMs: 2 * minutes }
  const collector = collect({ ...marks, maxAgeMs: 0 })

  t.test('dead containers but the last of each go; what is another’s or was started by hand stays', async (t) => {
    for (const attempt of [0, 1, 2]) await container(`pod-${attempt}`, 'test/used:1', ours('pod', attempt))
    await container('runs', 'test/used:1', ours('pod', 3), ['sleep', '1000'])
    for (const attempt of [0, 1]) await container(`gone-${attempt}`, 'test/used:1', ours('gone', attempt))
    for (const attempt of [0, 1]) await container(`other-${attempt}`, 'test/used:1', ours('pod', attempt, 'pi-02'))
    for (const attempt of [0, 1]) await container(`hand-${attempt}`, 'test/byhand:1', {})
    needs.set('gone', 'gone')
    await idle()
    await clock.advance(minutes)
    const kept = ['hand-0', 'hand-1', 'other-0', 'other-1', 'pod-2', 'runs']
    await eventually(
      async () => JSON.stringify(await names()) === JSON.stringify(kept),
      () => 'Others are left',
    )
    await collector.deleteUnusedContainers(never)
    t.same(await names(), kept)
    needs.set('pod', 'over')
    await collector.deleteUnusedContainers(never)
    t.same(
      await names(),
      kept.filter((name) => name !== 'pod-2'),
      'when the disk is short, of a pod that is over all that is dead',
    )
  })

  t.test('the longest unused images go until the disk is down to the low mark', async (t) => {
    await container('uses-a', 'test/a:1', {})
    await passOfImages(4)
    await docker.getContainer((await idOf(dockerd, 'uses-a')) ?? '').remove()
    await passOfImages(1)
    await eventually(async () => (await used()).percent <= full.percent - 15, undefined, 60_000)
    const left = await tags()
    t.ok(left.includes('test/used:1') && left.includes('test/byhand:1'), 'in use, if only by what is dead')
    t.ok(left.includes('test/a:1') && left.includes('test/a:again'), 'used but lately')
    t.equal(left.filter((tag) => /test\/[bcde]:1/.test(tag)).length, 2, `left: ${left.join(' ')}`)
    t.same(eventTexts, [])
    t.equal(named.length, 2, `no registry has them: ${named.join(' ')}`)
  })

  t.test('on demand all that is unused goes, under all its names, and the disk has the room', async (t) => {
    const before = await used()
    const { freedBytes } = await collector.deleteUnusedImages(never, async () => false)
    t.ok(freedBytes > 45 * megabyte, `${freedBytes} bytes freed`)
    t.same((await tags()).sort(), ['test/byhand:1', 'test/used:1'])
    t.ok((await docker.listImages()).some(({ RepoTags }) => RepoTags?.includes(sandboxImage)))
    t.ok((await used()).available - before.available > 45 * megabyte)
  })

  t.test(
    'when the disk is full of other things that is reported, first as an attempt, then as a failure that lasts',
    async (t) => {
      await writeFile(join(dataRoot, 'other-things'), Buffer.alloc((await used()).available - 20 * megabyte))
      const texts = () => eventTexts.map((one) => one.replace(/\d+ bytes/g, 'N bytes'))
      const failed =
        'Failed to garbage collect required amount of images. Attempted to free N bytes, but only found N bytes eligible to free.'
      await passOfImages(5)
      await eventually(() => eventTexts.length === 1)
      await passOfImages(5)
      await eventually(() => eventTexts.length === 3)
      t.same(texts(), [`FreeDiskSpaceFailed: ${failed}`, `FreeDiskSpaceFailed: ${failed}`, `ImageGCFailed: ${failed}`])
      t.same((await tags()).sort(), ['test/byhand:1', 'test/used:1'])
    },
  )

  t.test('an image that was unused for longer than the greatest age goes, whatever room there is', async (t) => {
    await collector.stop()
    await make('test/old:1', megabyte)
    collect({ highPercent: 100, lowPercent: 99, minAgeMs: 2 * minutes, maxAgeMs: 12 * minutes })
    await passOfImages(12)
    t.ok((await tags()).includes('test/old:1'))
    await passOfImages(6)
    await eventually(async () => !(await tags()).includes('test/old:1'))
    t.same((await tags()).sort(), ['test/byhand:1', 'test/used:1'])
  })
})

async function importImage({ docker }: TestDockerd, name: string, parts: readonly Buffer[]): Promise<void> {
  const colon = name.lastIndexOf(':')
  const stream = await docker.importImage(Readable.from([Buffer.concat(parts)]), {
    repo: name.slice(0, colon),
    tag: name.slice(colon + 1),
    changes: ['ENV PATH=/bin'],
  })
  for await (const _ of stream);
}

async function idOf({ docker }: TestDockerd, name: string): Promise<string | undefined> {
  return (await docker.listContainers({ all: true })).find(({ Labels }) => Labels['name'] === name)?.Id
}
