import { test } from 'tap'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, listening, nodeOnDocker, runsSince, statusOf } from './support/pods.ts'

const script = listening[2] ?? ''
const second = 'test/busybox:2'

test('pods that are changed while they run, on a real engine', {
  skip: whyNoDockerd(),
}, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  await dockerd.importImage(second)

  t.test('a container with another image starts again, and no other does', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const of = (images: { readonly [name: string]: string }) => {
      const one = (name: string, more = {}, line = script) =>
        container(name, line, { image: images[name] ?? image, ...more })
      const initContainers = [one('first', {}, 'exit 0'), one('side', { restartPolicy: 'Always' })]
      return aPod({ name: 'web', uid: 'uid-web', containers: [one('main'), one('other')], spec: { initContainers } })
    }
    node.want(of({}))
    const before = await node.until('web', isReady)
    const kept = (name: string) => {
      const [then, now] = [before, node.status('web') ?? {}].map((status) => runsSince(statusOf(status, name)))
      return then !== undefined && then === now
    }
    node.want(of({ main: second }))
    const after = await node.until('web', (one) => isReady(one) && statusOf(one, 'main')?.image === second)
    t.match(statusOf(after, 'main'), {
      restartCount: 1,
      lastState: { terminated: { exitCode: 0, reason: 'Completed' } },
    })
    t.ok(node.eventTexts().includes('Killing: Container main definition changed, will be restarted'))
    t.same([kept('other'), kept('side')], [true, true])
    node.want(of({ main: second, side: second, first: second }))
    const last = await node.until('web', (one) => isReady(one) && statusOf(one, 'side')?.image === second)
    t.ok(node.eventTexts().includes('Killing: Init container side definition changed'))
    t.match(statusOf(last, 'first'), { restartCount: 0, image }, 'it has done its work')
    t.equal(kept('other'), true)
    t.equal(runsSince(statusOf(last, 'main')), runsSince(statusOf(after, 'main')))
  })

  t.test('a container that runs is replaced whatever its restart policy, one that has ended is not', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const of = (other: string) =>
      aPod({
        name: 'once',
        uid: 'uid-once',
        restartPolicy: 'Never',
        containers: [container('done', 'exit 0', { image: other }), container('main', script, { image: other })],
      })
    node.want(of(image))
    await node.until(
      'once',
      (one) =>
        statusOf(one, 'done')?.state?.terminated !== undefined && statusOf(one, 'main')?.state?.running !== undefined,
    )
    node.want(of(second))
    const after = await node.until(
      'once',
      (one) => statusOf(one, 'main')?.image === second && statusOf(one, 'main')?.state?.running !== undefined,
    )
    t.match(statusOf(after, 'main'), { restartCount: 1 })
    t.match(statusOf(after, 'done'), { restartCount: 0, image, state: { terminated: { exitCode: 0 } } })
    t.same(
      node.statuses('once').filter(({ phase }) => phase === 'Succeeded' || phase === 'Failed'),
      [],
      'it was never called over',
    )
  })

  t.test(
    'an init container that runs ends as it began; one that fails starts again with the other image',
    async (t) => {
      const node = nodeOnDocker(t, dockerd)
      const of = (name: string, line: string, own: string) =>
        aPod({
          name,
          uid: `uid-${name}`,
          containers: [container('main', script)],
          spec: { initContainers: [container('first', line, { image: own })] },
        })
      const waits = 'until [ -e /tmp/go ]; do sleep 0.1; done'
      node.want(of('works', waits, image), of('fails', 'exit 3', image))
      const working = await node.until('works', (one) => statusOf(one, 'first')?.state?.running !== undefined)
      await node.until('fails', (one) => statusOf(one, 'first')?.state?.waiting?.reason === 'CrashLoopBackOff')
      node.want(of('works', waits, second), of('fails', 'exit 0', second))
      t.match(statusOf(await node.until('fails', isReady), 'first'), {
        image: second,
        state: { terminated: { exitCode: 0 } },
      })
      const id = statusOf(working, 'first')?.containerID?.slice('docker://'.length) ?? ''
      await node.runtime.exec(id, ['touch', '/tmp/go'], 20_000)
      t.match(statusOf(await node.until('works', isReady), 'first'), { image, restartCount: 0 })
    },
  )

  t.test('a deadline that is set later ends the pod; a toleration changes nothing for it', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const pod = aPod({ name: 'late', uid: 'uid-late', containers: [container('main', script)] })
    node.want(pod)
    const before = await node.until('late', isReady)
    const tolerations = [{ key: 'disk', operator: 'Exists' }]
    const tolerant = { ...pod, spec: { ...pod.spec, tolerations } }
    node.want(tolerant)
    node.want({ ...tolerant, spec: { ...tolerant.spec, activeDeadlineSeconds: 3600 } })
    node.want({ ...tolerant, spec: { ...tolerant.spec, activeDeadlineSeconds: 1 } })
    const ended = await node.until('late', ({ phase }) => phase === 'Failed')
    t.match(ended, { reason: 'DeadlineExceeded' })
    const { containerID, restartCount } = statusOf(before, 'main') ?? {}
    t.match(statusOf(ended, 'main'), { containerID, restartCount }, 'until then it ran on')
    await eventually(async () => (await node.runtime.listContainers()).every(({ state }) => state === 'exited'))
  })
})
