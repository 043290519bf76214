import { type Test, test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { type ManifestFile, staticPodManager } from './static-pod-manager.ts'

/** A folder that the test fills. */
function aFolder(t: Test) {
  const files = new Map<string, ManifestFile>()
  const calls: (readonly (string | undefined)[] | undefined)[] = []
  const warned: string[] = []
  let newest: readonly Pod[] = []
  let changed: () => void = () => undefined
  let broken: Error | undefined
  const clock = fakeClock()
  const log = quietLog(t)
  const manager = staticPodManager(
    {
      folder: {
        read: async () => {
          if (broken !== undefined) throw broken
          return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
        },
        watch: (onChange, signal) =>
          new Promise((resolve) => {
            changed = onChange
            signal.addEventListener('abort', () => resolve(), { once: true })
          }),
      },
      onChange(pods) {
        calls.push(pods?.map(({ metadata }) => metadata.name))
        newest = pods ?? []
      },
      warn: (reason, message) => warned.push(`${reason}: ${message}`),
      clock,
      log,
    },
    { nodeName: 'pi-01', fileCheckMs: 20_000 },
  )
  const stopping = new AbortController()
  t.teardown(() => stopping.abort())
  return {
    files,
    calls,
    warned,
    clock,
    log,
    manager,
    pods: () => newest,
    put(path: string, name: string, image = 'busybox:1') {
      const content = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: { containers: [{ name: 'main', image }] },
      }
      files.set(path, { path, content })
    },
    spoil: (error: Error | undefined) => {
      broken = error
    },
    nudge: () => changed(),
    start: () => void manager.run(stopping.signal),
  }
}

test('changed files are read at once after a notification of the kernel, else at the next check', async (t) => {
  const { put, calls, clock, nudge, start, files, pods } = aFolder(t)
  put('/m/a.yaml', 'a')
  start()
  await clock.advance(0)
  put('/m/b.yaml', 'b')
  nudge()
  await clock.advance(200)
  const [first] = pods()
  files.delete('/m/b.yaml')
  put('/m/c.yaml', 'c')
  await clock.advance(20_000)
  t.same(calls, [['a-pi-01'], ['a-pi-01', 'b-pi-01'], ['a-pi-01', 'c-pi-01']])
  t.equal(pods()[0], first, 'what did not change is the same pod')
  await clock.advance(60_000)
  t.equal(calls.length, 3, 'without a change there is no call')
})

test('a bad file is reported once, stops no other, and ends no running pod', async (t) => {
  const { put, files, calls, warned, log, manager } = aFolder(t)
  put('/m/a.yaml', 'a')
  put('/m/b.yaml', 'b')
  files.set('/m/c.yaml', { path: '/m/c.yaml', problem: 'it is not YAML: line 1' })
  await manager.look()
  files.set('/m/a.yaml', { path: '/m/a.yaml', problem: 'it is not YAML: line 3' })
  await manager.look()
  await manager.look()
  t.same(calls, [['a-pi-01', 'b-pi-01']])
  t.same(log.messages('warn').length, 2)
  t.match(warned, [
    'InvalidStaticPod: Static pod file /m/c.yaml is not used: it is not YAML: line 1. To fix it, correct the file',
    '/m/a.yaml',
  ])
  put('/m/a.yaml', 'a', 'busybox:2')
  files.delete('/m/b.yaml')
  await manager.look()
  t.same(calls.at(-1), ['a-pi-01'])
})

test('of two files with a pod of one name the first counts', async (t) => {
  const { put, calls, warned, manager } = aFolder(t)
  put('/m/1.yaml', 'web')
  put('/m/2.yaml', 'web')
  await manager.look()
  t.same(calls, [['web-pi-01']])
  t.match(warned, ['/m/2.yaml is not used: /m/1.yaml holds a pod of the same name'])
})

test('a folder that cannot be read leaves everything as it is', async (t) => {
  const { put, calls, spoil, manager, log } = aFolder(t)
  spoil(new Error('EIO'))
  await manager.look()
  t.same(calls, [undefined], 'the static pods are unknown')
  spoil(undefined)
  put('/m/a.yaml', 'a')
  await manager.look()
  spoil(new Error('EIO'))
  await manager.look()
  await manager.look()
  t.same(calls, [undefined, ['a-pi-01']])
  t.equal(log.messages('warn').length, 2)
})
