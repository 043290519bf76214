import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { networkProbes } from '../agent/adapters/http/network-probes.ts'
import { memoryCheckpoint } from '../agent/testing/pod-world.ts'
import { aPod } from '../api/testing/builders.ts'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, nodeOnDocker, statusOf } from './support/pods.ts'

const run = promisify(execFile)
const network = networkProbes()
/** Often, and in no hurry: a slow machine is not an ill container. */
const often = { periodSeconds: 1, timeoutSeconds: 60 }
/** It takes no notice of SIGTERM. */
const deaf = 'while :; do sleep 0.1; done'

test('probes on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)

  t.test('a container that stops answering is restarted; its grace is the probe’s', async (t) => {
    const pods = nodeOnDocker(t, dockerd, { network })
    const look = 'if [ -e /tmp/ill ]; then echo it is ill; exit 1; fi'
    const livenessProbe = {
      ...often,
      exec: { command: ['sh', '-c', look] },
      failureThreshold: 2,
      terminationGracePeriodSeconds: 1,
    }
    const containers = [container('main', deaf, { livenessProbe })]
    pods.want(aPod({ name: 'ill', uid: 'uid-ill', containers, spec: { terminationGracePeriodSeconds: 1000 } }))
    const well = await pods.until('ill', isReady)
    t.equal(statusOf(well, 'main')?.restartCount, 0)
    await pods.within('ill', 'main', 'touch /tmp/ill')
    const again = await pods.until('ill', (status) => statusOf(status, 'main')?.restartCount === 1)
    t.match(statusOf(again, 'main'), { lastState: { terminated: { exitCode: 137, reason: 'Error' } } })
    t.ok(pods.eventTexts().includes('Killing: Container main failed liveness probe, will be restarted'))
    t.ok(pods.eventTexts().includes('Unhealthy: Liveness probe failed: it is ill\n'), pods.eventTexts().join('\n'))
  })

  t.test('readiness comes and goes with what the container answers, and nothing is restarted', async (t) => {
    const pods = nodeOnDocker(t, dockerd, { network })
    const readinessProbe = { ...often, httpGet: { port: 'web', path: '/ready' }, failureThreshold: 1 }
    const ports = [{ name: 'web', containerPort: 8080 }]
    const main = container('main', 'mkdir /www; exec httpd -f -p 8080 -h /www', { readinessProbe, ports })
    pods.want(aPod({ name: 'moody', uid: 'uid-moody', containers: [main] }))
    const early = await pods.until('moody', ({ phase }) => phase === 'Running')
    t.equal(isReady(early), false)
    await pods.within('moody', 'main', 'mkdir -p /www; echo ok > /www/ready')
    await pods.until('moody', isReady)
    await pods.within('moody', 'main', 'rm /www/ready')
    const late = await pods.until('moody', (status) => !isReady(status))
    t.match(statusOf(late, 'main'), { ready: false, started: true, restartCount: 0 })
    t.match(
      late.conditions?.find(({ type }) => type === 'Ready'),
      { reason: 'ContainersNotReady' },
    )
    t.ok(pods.eventTexts().includes('Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 404'))
  })

  t.test('a container that starts slowly is left in peace until it has started, or never does', async (t) => {
    const pods = nodeOnDocker(t, dockerd, { network })
    const startupProbe = { ...often, tcpSocket: { port: 8080 }, failureThreshold: 1000 }
    const slow = container('main', 'until [ -e /tmp/go ]; do sleep 0.1; done; exec httpd -f -p 8080 -h /tmp', {
      startupProbe,
      livenessProbe: { ...often, tcpSocket: { port: 8080 }, failureThreshold: 1 },
    })
    const never = container('main', deaf, {
      startupProbe: { ...startupProbe, failureThreshold: 2, terminationGracePeriodSeconds: 1 },
    })
    pods.want(
      aPod({ name: 'slow', uid: 'uid-slow', containers: [slow] }),
      aPod({ name: 'never', uid: 'uid-never', containers: [never] }),
    )
    const early = await pods.until('slow', ({ phase }) => phase === 'Running')
    t.match(statusOf(early, 'main'), { started: false, ready: false })
    await pods.until('never', (status) => statusOf(status, 'main')?.restartCount === 1)
    t.ok(pods.eventTexts().includes('Killing: Container main failed startup probe, will be restarted'))
    t.match(statusOf(pods.status('slow') ?? {}, 'main'), { started: false, restartCount: 0 }, 'it was given longer')
    await pods.within('slow', 'main', 'touch /tmp/go')
    const ready = await pods.until('slow', isReady)
    t.match(statusOf(ready, 'main'), { started: true, restartCount: 0 })
  })

  t.test('the engine writes nothing for a probe, and ignores the health check of an image', async (t) => {
    const Test = ['CMD', 'touch', '/asked-by-the-engine']
    const own = await dockerd.docker.createContainer({ Image: image, Healthcheck: { Test, Interval: 1e9 } })
    await own.commit({ repo: 'test/healthy', tag: '1' })
    await own.remove()
    const pods = nodeOnDocker(t, dockerd, { network })
    const exec = { command: ['sh', '-c', 'echo asked >> /dev/shm/probes'] }
    const main = container('main', 'exec sleep 100000', {
      image: 'test/healthy:1',
      livenessProbe: { ...often, exec, failureThreshold: 1000 },
    })
    pods.want(aPod({ name: 'probed', uid: 'uid-probed', containers: [main] }))
    const status = await pods.until('probed', isReady)
    const id = statusOf(status, 'main')?.containerID?.slice('docker://'.length) ?? ''
    const { State } = await dockerd.docker.getContainer(id).inspect()
    t.equal(State.Health, undefined)
    t.match(await pods.runtime.exec(id, ['sleep', '4321'], 1_000), { exitCode: undefined }, 'what takes too long')
    await eventually(async () => !(await pods.runtime.exec(id, ['ps'], 60_000)).output.includes('sleep 4321'))
    const probes = async () =>
      Number((await pods.runtime.exec(id, ['sh', '-c', 'cat /dev/shm/* 2>/dev/null | wc -l'], 60_000)).output)
    const asked = async (times: number) => {
      const first = await probes()
      await eventually(async () => (await probes()) >= first + times)
    }
    const mark = join(testFolder(t), 'mark')
    // Whatever else the engine writes now and then: were it for probes, no window would be free of it.
    await eventually(async () => {
      await asked(1)
      await writeFile(mark, '')
      await asked(3)
      const { stdout } = await run('find', [dockerd.rootDirectory, '-ignore_readdir_race', '-xdev', '-newer', mark])
      if (stdout !== '') t.comment(stdout)
      return stdout === ''
    })
  })

  t.test('an agent that starts again does not call a ready pod unready', async (t) => {
    const checkpoint = memoryCheckpoint()
    const serve = container('main', 'exec httpd -f -p 8080 -h /bin', {
      readinessProbe: { ...often, httpGet: { port: 8080, path: '/busybox' }, failureThreshold: 1000 },
    })
    const first = nodeOnDocker(t, dockerd, { network, checkpoint })
    first.want(aPod({ name: 'calm', uid: 'uid-calm', containers: [serve] }))
    await first.until('calm', isReady)
    await first.stop()
    const second = nodeOnDocker(t, dockerd, { network, checkpoint })
    t.ok(isReady(await second.until('calm', () => true)), 'its first status')
  })
})
