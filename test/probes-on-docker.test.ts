import { test } from 'tap'
import { networkProbes } from '../agent/adapters/network-probes.ts'
import { memoryCheckpoint } from '../agent/testing/pod-world.ts'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, image, isReady, nodeOnDocker, statusOf } from './support/pods.ts'

const network = networkProbes('kube-probe/1.32')

test('probes on a real engine', { skip: whyNoDockerd(), timeout: 80_000 }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)

  t.test('a container that stops answering is restarted; its grace is the probe’s', async (t) => {
    const pods = nodeOnDocker(t, dockerd, { network })
    const livenessProbe = {
      exec: { command: ['cat', '/tmp/alive'] },
      periodSeconds: 1,
      failureThreshold: 2,
      terminationGracePeriodSeconds: 3,
    }
    const main = container(
      'main',
      'touch /tmp/alive; sleep 2; rm /tmp/alive; trap "exit 0" TERM; while :; do sleep 0.1; done',
      {
        livenessProbe,
      },
    )
    pods.want(aPod({ name: 'ill', uid: 'uid-ill', containers: [main] }))
    await pods.until('ill', isReady)
    const again = await pods.until('ill', (status) => statusOf(status, 'main')?.restartCount === 1)
    t.match(statusOf(again, 'main'), { lastState: { terminated: { reason: /Completed|Error/ } } })
    t.ok(pods.told().includes('Killing: Container main failed liveness probe, will be restarted'))
    t.match(pods.told().join('\n'), /Unhealthy: Liveness probe failed: cat: can't open '\/tmp\/alive'/)
  })

  t.test('readiness comes and goes with what the container answers, and nothing is restarted', async (t) => {
    const pods = nodeOnDocker(t, dockerd, { network })
    const serve = 'mkdir /www; (sleep 1; echo ok > /www/ready; sleep 2; rm /www/ready) & exec httpd -f -p 8080 -h /www'
    const readinessProbe = { httpGet: { port: 'web', path: '/ready' }, periodSeconds: 1, failureThreshold: 1 }
    const main = container('main', serve, { readinessProbe, ports: [{ name: 'web', containerPort: 8080 }] })
    pods.want(aPod({ name: 'moody', uid: 'uid-moody', containers: [main] }))
    const early = await pods.until('moody', ({ phase }) => phase === 'Running')
    t.equal(isReady(early), false)
    await pods.until('moody', isReady)
    const late = await pods.until('moody', (status) => !isReady(status))
    t.match(statusOf(late, 'main'), { ready: false, started: true, restartCount: 0 })
    t.match(
      late.conditions?.find(({ type }) => type === 'Ready'),
      { reason: 'ContainersNotReady' },
    )
    t.ok(pods.told().includes('Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 404'))
  })

  t.test('a container that starts slowly is left in peace until it has started, or never does', async (t) => {
    const pods = nodeOnDocker(t, dockerd, { network })
    const startupProbe = { tcpSocket: { port: 8080 }, periodSeconds: 1, failureThreshold: 20 }
    const slow = container('main', 'sleep 2; exec httpd -f -p 8080 -h /tmp', {
      startupProbe,
      livenessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1, failureThreshold: 1 },
    })
    const never = container('main', 'trap "exit 0" TERM; while :; do sleep 0.1; done', {
      startupProbe: { ...startupProbe, failureThreshold: 2, terminationGracePeriodSeconds: 2 },
    })
    pods.want(
      aPod({ name: 'slow', uid: 'uid-slow', containers: [slow] }),
      aPod({ name: 'never', uid: 'uid-never', containers: [never] }),
    )
    const early = await pods.until('slow', ({ phase }) => phase === 'Running')
    t.match(statusOf(early, 'main'), { started: false, ready: false })
    const ready = await pods.until('slow', isReady)
    t.match(statusOf(ready, 'main'), { started: true, restartCount: 0 })
    await pods.until('never', (status) => statusOf(status, 'main')?.restartCount === 1)
    t.ok(pods.told().includes('Killing: Container main failed startup probe, will be restarted'))
  })

  t.test('an agent that starts again does not call a ready pod unready', async (t) => {
    const checkpoint = memoryCheckpoint()
    const serve = container('main', 'exec httpd -f -p 8080 -h /bin', {
      readinessProbe: { httpGet: { port: 8080, path: '/busybox' }, periodSeconds: 30 },
    })
    const first = nodeOnDocker(t, dockerd, { network, checkpoint })
    first.want(aPod({ name: 'calm', uid: 'uid-calm', containers: [serve] }))
    await first.until('calm', isReady)
    await first.stop()
    const second = nodeOnDocker(t, dockerd, { network, checkpoint })
    t.ok(isReady(await second.until('calm', () => true)), 'the first it says')
  })
})
