import { test } from 'tap'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, nodeOnDocker, outputOf, statusOf } from './support/pods.ts'

test('a pod’s containers in their order, on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)

  t.test('init containers come first, one by one; a sidecar stays until the others are gone', async (t) => {
    const pods = nodeOnDocker(t, dockerd)
    const sidecar = 'trap "echo ended; exit 0" TERM; echo up; httpd -p 8080 -h /; while :; do sleep 0.1; done'
    const pod = aPod({
      name: 'staged',
      uid: 'uid-staged',
      spec: {
        initContainers: [
          container('first', 'until [ -e /tmp/go ]; do sleep 0.1; done'),
          container('side', sidecar, { restartPolicy: 'Always' }),
          container('second', 'until wget -qO /dev/null http://127.0.0.1:8080/bin/busybox; do sleep 0.1; done'),
        ],
      },
      containers: [container('main', 'trap "sleep 1; exit 0" TERM; while :; do sleep 0.1; done')],
    })
    pods.want(pod)
    const working = await pods.until('staged', (status) => statusOf(status, 'first')?.state?.running !== undefined)
    t.equal(working.phase, 'Pending')
    t.match(statusOf(working, 'main'), { state: { waiting: { reason: 'PodInitializing' } } })
    await pods.go('staged', 'first')
    const ready = await pods.until('staged', isReady)
    t.match(statusOf(ready, 'first'), { ready: true, state: { terminated: { exitCode: 0, reason: 'Completed' } } })
    t.match(statusOf(ready, 'side'), { ready: true, started: true, state: { running: {} } })
    t.same(
      pods.eventTexts().filter((line) => line.startsWith('Started')),
      ['first', 'side', 'second', 'main'].map((name) => `Started: Started container ${name}`),
    )
    const metadata = { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 60 }
    pods.want({ ...pod, metadata })
    await eventually(() => pods.gone.includes('uid-staged'))
    const stops = pods.eventTexts().filter((line) => line.startsWith('Killing'))
    t.same(
      stops,
      ['main', 'side'].map((name) => `Killing: Stopping container ${name}`),
    )
  })

  t.test('an init container that fails is tried again, or fails the pod', async (t) => {
    const pods = nodeOnDocker(t, dockerd)
    const initContainers = [container('broken', 'exit 3')]
    const containers = [container('main', 'sleep 1000')]
    pods.want(
      aPod({ name: 'once', uid: 'uid-once', restartPolicy: 'Never', spec: { initContainers }, containers }),
      aPod({ name: 'again', uid: 'uid-again', spec: { initContainers }, containers }),
    )
    const failed = await pods.until('once', ({ phase }) => phase === 'Failed')
    t.match(statusOf(failed, 'broken'), { state: { terminated: { exitCode: 3 } }, restartCount: 0 })
    const waits = await pods.until('again', (status) => statusOf(status, 'broken')?.state?.waiting !== undefined)
    t.equal(waits.phase, 'Pending')
    const inBackOff = await pods.until(
      'again',
      (status) => statusOf(status, 'broken')?.state?.waiting?.reason === 'CrashLoopBackOff',
    )
    t.match(
      inBackOff.conditions?.find(({ type }) => type === 'Initialized'),
      {
        status: 'False',
        message: 'containers with incomplete status: [broken]',
      },
    )
  })

  t.test('a job is done when its containers are, and its sidecar ends with it', async (t) => {
    const pods = nodeOnDocker(t, dockerd)
    const side = container('side', 'trap "echo ended; exit 0" TERM; echo up; while :; do sleep 0.1; done', {
      restartPolicy: 'Always',
    })
    const containers = [container('main', 'until [ -e /tmp/go ]; do sleep 0.1; done')]
    pods.want(
      aPod({ name: 'job', uid: 'uid-job', restartPolicy: 'OnFailure', spec: { initContainers: [side] }, containers }),
    )
    await pods.until('job', isReady)
    await eventually(async () => (await outputOf(dockerd, 'uid-job', 'side')) === 'up\n')
    await pods.go('job', 'main')
    await pods.until('job', ({ phase }) => phase === 'Succeeded')
    await eventually(async () => (await outputOf(dockerd, 'uid-job', 'side')) === 'up\nended\n')
    await eventually(async () => (await pods.runtime.listContainers()).every(({ state }) => state === 'exited'))
  })
})
