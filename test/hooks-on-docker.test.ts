import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'tap'
import { networkProbes } from '../agent/adapters/http/network-probes.ts'
import type { PodSpec } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, listening, nodeOnDocker, outputOf, statusOf } from './support/pods.ts'
import { testVolumes } from './support/volumes.ts'

const network = networkProbes()
const listeningScript = listening[2] ?? ''

test('hooks, deadlines and shared processes on a real engine', {
  skip: whyNoDockerd(),
}, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const deletedIn = (pod: ReturnType<typeof aPod>, seconds: number) => ({
    ...pod,
    metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: seconds },
  })

  t.test('after its start and before its end a container does what it wants done', async (t) => {
    const volumes = await testVolumes(t)
    const pods = nodeOnDocker(t, dockerd, { network, volumes: volumes.store })
    const main = container('main', 'trap "echo ended >> /out/log; exit 0" TERM; while :; do sleep 0.1; done', {
      lifecycle: {
        postStart: {
          exec: { command: ['sh', '-c', 'until [ -e /out/go ]; do sleep 0.1; done; echo began >> /out/log'] },
        },
        preStop: { exec: { command: ['sh', '-c', 'echo ending >> /out/log'] } },
      },
      volumeMounts: [{ name: 'out', mountPath: '/out' }],
    })
    const second = container('second', listeningScript)
    const out = join(volumes.folder, 'out')
    await mkdir(out)
    const spec = { volumes: [{ name: 'out', hostPath: { path: out } }] }
    const pod = aPod({ name: 'neat', uid: 'uid-neat', containers: [main, second], spec })
    pods.want(pod)
    const early = await pods.until('neat', (status) => statusOf(status, 'main')?.state?.running !== undefined)
    t.match(statusOf(early, 'main'), { ready: false })
    t.match(statusOf(early, 'second'), { state: { waiting: {} } }, 'the next one waits for the hook')
    await writeFile(join(out, 'go'), '')
    await pods.until('neat', isReady)
    pods.want(deletedIn(pod, 60))
    await eventually(() => pods.gone.includes('uid-neat'))
    t.equal(await readFile(join(out, 'log'), 'utf8'), 'began\nending\nended\n')
  })

  t.test('a hook that takes all the time leaves two seconds; one that fails is reported', async (t) => {
    const pods = nodeOnDocker(t, dockerd, { network })
    const main = container('main', listeningScript, {
      lifecycle: { preStop: { exec: { command: ['sleep', '1000'] } } },
    })
    const broken = container('broken', listeningScript, { lifecycle: { preStop: { tcpSocket: { port: 9 } } } })
    const pod = aPod({ name: 'slow', uid: 'uid-slow', containers: [main, broken] })
    pods.want(pod)
    await pods.until('slow', isReady)
    pods.want(deletedIn(pod, 3))
    const beganMs = performance.now()
    await eventually(() => pods.gone.includes('uid-slow'))
    const tookMs = performance.now() - beganMs
    t.ok(tookMs > 2_900, `${tookMs} ms`)
    const failures = pods.eventTexts().filter((line) => line.startsWith('FailedPreStopHook'))
    t.equal(failures.length, 2)
  })

  t.test('hooks may ask over HTTP, or sleep', async (t) => {
    const asked: string[] = []
    const server = createServer(({ url = '', headers }, response) => {
      asked.push(`${url} ${headers['x-who']}`)
      response.writeHead(500).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const httpHeaders = [{ name: 'X-Who', value: 'web' }]
    const get = (path: string) => ({ httpGet: { host: '127.0.0.1', port, path, scheme: 'HTTP', httpHeaders } })
    const unheard = { httpGet: { host: '127.0.0.1', port: 1, path: '/' } }
    const pods = nodeOnDocker(t, dockerd, { network })
    const own =
      'mkdir -p /www; echo hi > /www/own; httpd -p 8080 -h /www; trap "exit 0" TERM; while :; do sleep 0.1; done'
    const pod = aPod({
      name: 'asks',
      uid: 'uid-asks',
      containers: [
        container('main', listeningScript, { lifecycle: { postStart: get('/begun'), preStop: get('/ending') } }),
        container('sleeps', own, {
          lifecycle: { postStart: { sleep: { seconds: 1 } }, preStop: { sleep: { seconds: 2 } } },
          ports: [{ name: 'web', containerPort: 8080 }],
        }),
        // Its own pod is asked when no host is named.
        container('third', listeningScript, { lifecycle: { postStart: { httpGet: { port: 8080, path: '/own' } } } }),
      ],
    })
    pods.want(
      pod,
      aPod({
        name: 'bad',
        uid: 'uid-bad-http',
        containers: [container('main', listeningScript, { lifecycle: { postStart: unheard } })],
      }),
    )
    await pods.until('asks', isReady)
    t.same(asked, ['/begun web'], 'whatever the status of the answer')
    await pods.until('bad', (status) => statusOf(status, 'main')?.restartCount === 1)
    t.match(pods.eventTexts().join('\n'), /FailedPostStartHook: PostStartHook failed/)
    pods.want(deletedIn(pod, 20))
    const beganMs = performance.now()
    await eventually(() => pods.gone.includes('uid-asks'))
    t.ok(performance.now() - beganMs >= 2_000, 'it slept first')
    t.ok(asked.includes('/ending web'))
    t.notMatch(pods.eventTexts().join('\n'), /FailedPreStopHook/)
  })

  t.test('a container whose postStart hook fails is started again', async (t) => {
    const pods = nodeOnDocker(t, dockerd, { network })
    const postStart = { exec: { command: ['sh', '-c', 'exit 4'] } }
    pods.want(
      aPod({
        name: 'bad',
        uid: 'uid-bad',
        containers: [container('main', listeningScript, { lifecycle: { postStart } })],
      }),
    )
    await pods.until('bad', (status) => (statusOf(status, 'main')?.restartCount ?? 0) >= 1)
    t.match(pods.eventTexts().join('\n'), /FailedPostStartHook: PostStartHook failed/)
  })

  t.test('a pod has its deadline', async (t) => {
    const pods = nodeOnDocker(t, dockerd)
    const late = (spec: Partial<PodSpec>) =>
      aPod({ name: 'late', uid: 'uid-late', spec, containers: [container('main', listeningScript)] })
    pods.want(late({ activeDeadlineSeconds: 1000 }))
    await pods.until('late', isReady)
    pods.want(late({ activeDeadlineSeconds: 1 }))
    const failed = await pods.until('late', ({ phase }) => phase === 'Failed')
    t.match(failed, {
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    })
    await eventually(async () => (await pods.runtime.listContainers()).every(({ state }) => state === 'exited'))
  })

  t.test('containers that share their processes see each other', async (t) => {
    const pods = nodeOnDocker(t, dockerd)
    const look = 'until ps | grep -q "[s]leep 4242"; do sleep 0.1; done; echo seen; exec sleep 1000'
    const containers = [container('one', 'exec sleep 4242'), container('two', look)]
    pods.want(aPod({ name: 'open', uid: 'uid-open', spec: { shareProcessNamespace: true }, containers }))
    await pods.until('open', isReady)
    await eventually(async () => (await outputOf(dockerd, 'uid-open', 'two')) === 'seen\n')
  })
})
