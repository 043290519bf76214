import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { fileCheckpoint } from '../agent/adapters/disk/checkpoint.ts'
import { freePort } from '../agent/testing/free-port.ts'
import type { Container, Pod, PodStatus } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { startDockerd, type TestDockerd, whyNoDockerd } from './support/dockerd.ts'
import { eventually, image, isReady, listening, nodeOnDocker } from './support/pods.ts'

function container(name: string, command: readonly string[], more: Partial<Container> = {}): Container {
  return { name, image, imagePullPolicy: 'IfNotPresent', command, ...more }
}

function pod(
  name: string,
  command: readonly string[],
  more: Parameters<typeof aPod>[0] & { container?: Partial<Container> } = {},
): Pod {
  return aPod({ name, uid: `uid-${name}`, containers: [container('main', command, more.container)], ...more })
}

test('pods on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)

  t.test('containers of a pod share their network, and get their environment and arguments', async (t) => {
    const { pods } = agent(t, dockerd)
    const server = container('server', ['sh', '-c'], {
      args: ['echo "$GREETING from $(POD)" > /tmp/index.html; exec httpd -f -p 8080 -h /tmp'],
      env: [
        { name: 'WHO', value: 'bramble' },
        { name: 'GREETING', value: 'hello $(WHO)' },
        { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      ],
    })
    const fetch = 'until wget -qO /dev/null http://127.0.0.1:8080/index.html; do sleep 0.1; done; hostname; sleep 1000'
    const client = container('client', ['sh', '-c', fetch])
    pods.want(aPod({ name: 'pair', uid: 'uid-pair', containers: [server, client] }))
    const status = await pods.until('pair', ({ phase }) => phase === 'Running')
    const page = await textOf(`http://${status.podIP}:8080/index.html`)
    t.equal(page, 'hello bramble from pair\n')
    const { stdout } = await logsOf(dockerd, 'uid-pair', 'client')
    t.equal(stdout, 'pair\n', 'the host name is the pod’s')
  })

  t.test('a container that keeps failing is started again, further and further apart', async (t) => {
    const { pods } = agent(t, dockerd)
    pods.want(pod('crasher', ['sh', '-c', 'exit 3']))
    const status = await pods.until('crasher', (one) => waitingOf(one)?.reason === 'CrashLoopBackOff')
    t.match(status, {
      phase: 'Running',
      containerStatuses: [
        {
          restartCount: 1,
          ready: false,
          state: {
            waiting: { message: 'back-off 10s restarting failed container=main pod=crasher_default(uid-crasher)' },
          },
          lastState: { terminated: { exitCode: 3, reason: 'Error', containerID: /^docker:/ } },
        },
      ],
    })
    t.ok(
      pods
        .eventTexts()
        .includes('BackOff: Back-off restarting failed container main in pod crasher_default(uid-crasher)'),
    )
  })

  t.test('pods that may end do end, and their sandbox with them', async (t) => {
    const { pods, runtime } = agent(t, dockerd)
    pods.want(
      pod('job', ['sh', '-c', 'exit 0'], { restartPolicy: 'OnFailure' }),
      pod('failed', ['sh', '-c', 'exit 4'], { restartPolicy: 'Never' }),
    )
    const job = await pods.until('job', ({ phase }) => phase === 'Succeeded')
    t.match(job.containerStatuses, [{ state: { terminated: { exitCode: 0, reason: 'Completed' } }, restartCount: 0 }])
    t.match(job.conditions?.[2], { type: 'Ready', status: 'False', reason: 'PodCompleted' })
    t.match(await pods.until('failed', ({ phase }) => phase === 'Failed'), {
      containerStatuses: [{ state: { terminated: { exitCode: 4, reason: 'Error' } } }],
    })
    await eventually(async () => (await runtime.listContainers()).every(({ state }) => state === 'exited'))
    t.equal((await runtime.listContainers()).length, 4, 'what is left is kept to be looked at')
  })

  t.test('a port of the host leads to the pod', async (t) => {
    const { pods } = agent(t, dockerd)
    const hostPort = await freePort()
    const serve = ['sh', '-c', 'echo here > /tmp/index.html; exec httpd -f -p 80 -h /tmp']
    pods.want(pod('web', serve, { container: { ports: [{ containerPort: 80, hostPort }] } }))
    await pods.until('web', ({ phase }) => phase === 'Running')
    t.equal(await textOf(`http://127.0.0.1:${hostPort}`), 'here\n')
  })

  t.test('a pod on the host’s network is where the host is', async (t) => {
    const { pods } = agent(t, dockerd)
    const port = await freePort()
    const serve = ['sh', '-c', `echo host > /tmp/index.html; exec httpd -f -p 127.0.0.1:${port} -h /tmp`]
    pods.want(pod('host', serve, { spec: { hostNetwork: true } }))
    const status = await pods.until('host', ({ phase }) => phase === 'Running')
    t.equal(status.podIP, '192.0.2.11')
    t.equal(await textOf(`http://127.0.0.1:${port}`), 'host\n')
  })

  t.test('limits and requests reach the kernel’s controls', async (t) => {
    const { pods } = agent(t, dockerd)
    const resources = { limits: { cpu: '500m', memory: '64Mi' }, requests: { cpu: '250m', memory: '32Mi' } }
    pods.want(pod('modest', listening, { container: { resources } }))
    const status = await pods.until('modest', ({ phase }) => phase === 'Running')
    const id = status.containerStatuses?.[0]?.containerID?.slice('docker://'.length) ?? ''
    const { HostConfig } = await dockerd.docker.getContainer(id).inspect()
    t.match(HostConfig, {
      CpuShares: 256,
      CpuPeriod: 100_000,
      CpuQuota: 50_000,
      Memory: 64 * 1024 ** 2,
      MemorySwap: 64 * 1024 ** 2,
      OomScoreAdj: 993,
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10485760', 'max-file': '5' } },
    })
  })

  t.test('a pod whose limits are its requests is the last the kernel kills', async (t) => {
    const { pods, runtime } = agent(t, dockerd)
    const resources = { limits: { cpu: '100m', memory: '32Mi' }, requests: { cpu: '100m', memory: '32Mi' } }
    pods.want(pod('guaranteed', listening, { container: { resources } }))
    const status = await pods.until('guaranteed', isReady)
    t.equal(status.qosClass, 'Guaranteed')
    const main = (await runtime.listContainers()).find(({ identity }) => identity.kind === 'container')
    const { State } = await dockerd.docker.getContainer(main?.id ?? '').inspect()
    const score = (await readFile(`/proc/${State.Pid}/oom_score_adj`, 'utf8')).trim()
    t.equal(score, (await mayLowerScores()) ? '-997' : '0', 'as far as the engine may')
    t.equal(status.containerStatuses?.[0]?.restartCount, 0)
  })

  t.test('an image that cannot be pulled is reported in the registry’s words', async (t) => {
    const { pods } = agent(t, dockerd)
    pods.want(pod('absent', listening, { container: { image: '127.0.0.1:1/absent:1' } }))
    const status = await pods.until('absent', (one) => waitingOf(one)?.reason === 'ErrImagePull')
    t.match(waitingOf(status)?.message, /127\.0\.0\.1:1.*connection refused/)
    t.equal(status.phase, 'Pending')
  })

  t.test('a deleted pod gets SIGTERM, has its grace period, and leaves nothing', async (t) => {
    const { pods, runtime } = agent(t, dockerd)
    const since = Math.floor(Date.now() / 1000)
    const going = pod('going', ['sh', '-c', 'trap "exit 7" TERM; while :; do sleep 0.1; done'])
    pods.want(going)
    await pods.until('going', ({ phase }) => phase === 'Running')
    await trapped(dockerd, 'uid-going')
    const metadata = { ...going.metadata, deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 }
    pods.want({ ...going, metadata })
    await eventually(async () => pods.gone.includes('uid-going'))
    t.same(await runtime.listContainers(), [])
    t.ok(pods.eventTexts().includes('Killing: Stopping container main'))
    t.same(await exitCodes(dockerd, 'uid-going', since), ['7'])
  })

  t.test('an agent that starts again takes over what runs, without a controller', async (t) => {
    const path = join(testFolder(t), 'desired.json')
    const first = agent(t, dockerd, path)
    first.pods.want(pod('kept', listening), pod('done', ['sh', '-c', 'exit 0'], { restartPolicy: 'Never' }))
    const before = await first.pods.until('kept', ({ phase }) => phase === 'Running')
    const ended = await first.pods.until('done', ({ phase }) => phase === 'Succeeded')
    await eventually(
      async () => (await first.runtime.listContainers()).filter((one) => one.state === 'running').length === 2,
    )
    await first.pods.stop()
    const second = agent(t, dockerd, path)
    const after = await second.pods.until('kept', ({ phase }) => phase === 'Running')
    t.same(after.containerStatuses, before.containerStatuses, 'the same container, since the same moment')
    t.equal(after.podIP, before.podIP)
    t.same((await second.pods.until('done', () => true)).containerStatuses, ended.containerStatuses)
    t.same(second.pods.events, [])
  })

  t.test('what others made is never touched, what is not wanted any more is removed', async (t) => {
    const { pods, runtime } = agent(t, dockerd)
    const stranger = await dockerd.docker.createContainer({ Image: image, Cmd: ['sleep', '1000'] })
    t.teardown(() => stranger.remove({ force: true }))
    await stranger.start()
    pods.want(pod('stays', listening), pod('goes', listening))
    await pods.until('stays', ({ phase }) => phase === 'Running')
    await pods.until('goes', ({ phase }) => phase === 'Running')
    await trapped(dockerd, 'uid-goes')
    pods.want(pod('stays', listening))
    await eventually(async () => pods.gone.includes('uid-goes'))
    t.same([...new Set((await runtime.listContainers()).map(({ identity }) => identity.podName))], ['stays'])
    t.equal((await stranger.inspect()).State.Running, true)
  })

  t.test('the sandbox of a pod costs nothing', async (t) => {
    const { pods, runtime } = agent(t, dockerd)
    pods.want(pod('idle', listening))
    await pods.until('idle', ({ phase }) => phase === 'Running')
    const sandbox = (await runtime.listContainers()).find(({ identity }) => identity.kind === 'sandbox')
    const { State } = await dockerd.docker.getContainer(sandbox?.id ?? '').inspect()
    const pause = { x64: '34', arm64: '73', arm: '29' }[process.arch as string]
    let call: string | undefined
    await eventually(
      async () => {
        call = (await readFile(`/proc/${State.Pid}/syscall`, 'utf8')).split(' ')[0]
        return call === pause
      },
      () => `It waits in the kernel for a signal: it is in call ${call}`,
    )
    const shown = await readFile(`/proc/${State.Pid}/status`, 'utf8')
    t.match(shown, /SigIgn:\s*0*10000\n/, 'its orphans vanish by themselves')
  })
})

function agent(t: Test, dockerd: TestDockerd, path?: string) {
  const pods = nodeOnDocker(t, dockerd, path === undefined ? {} : { checkpoint: fileCheckpoint(path, quietLog(t)) })
  return { pods, runtime: pods.runtime }
}

async function logsOf(dockerd: TestDockerd, podUID: string, name: string): Promise<{ readonly stdout: string }> {
  const label = [`io.kubernetes.pod.uid=${podUID}`, `io.kubernetes.container.name=${name}`]
  for (let tries = 0; ; tries++) {
    const [row] = await dockerd.docker.listContainers({ all: true, filters: { label } })
    if (row !== undefined) {
      const logs = await dockerd.docker.getContainer(row.Id).logs({ stdout: true, stderr: true, follow: false })
      // One frame: eight bytes of head, then the text.
      const stdout = logs.subarray(8).toString()
      if (stdout !== '' || tries > 2400) return { stdout }
    }
    await delay(25)
  }
}

async function textOf(url: string): Promise<string> {
  for (let tries = 0; ; tries++) {
    try {
      const [response] = await once(get(url), 'response')
      let text = ''
      for await (const chunk of response) text += chunk
      return text
    } catch (error) {
      if (tries > 2400) throw error
      await delay(25)
    }
  }
}

/** The shell has set its trap: signal 15 is in the mask of those it catches. */
async function trapped({ docker }: TestDockerd, podUID: string): Promise<void> {
  const label = [`io.kubernetes.pod.uid=${podUID}`, 'io.kubernetes.docker.type=container']
  const [row] = await docker.listContainers({ filters: { label } })
  const { State } = await docker.getContainer(row?.Id ?? '').inspect()
  await eventually(async () => {
    const [, caught = '0'] = /SigCgt:\s*([0-9a-f]+)/.exec(await readFile(`/proc/${State.Pid}/status`, 'utf8')) ?? []
    return (BigInt(`0x${caught}`) & (1n << 14n)) !== 0n
  })
}

async function exitCodes({ docker }: TestDockerd, podUID: string, since: number): Promise<readonly string[]> {
  const label = [`io.kubernetes.pod.uid=${podUID}`, 'io.kubernetes.docker.type=container']
  const until = Math.ceil(Date.now() / 1000)
  const stream = await docker.getEvents({ since, until, filters: JSON.stringify({ event: ['die'], label }) })
  let text = ''
  for await (const chunk of stream) text += chunk
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line).Actor.Attributes.exitCode)
}

/** CAP_SYS_RESOURCE is number 24; the engine has what we have. */
async function mayLowerScores(): Promise<boolean> {
  const [, held = '0'] = /CapEff:\s*([0-9a-f]+)/.exec(await readFile('/proc/self/status', 'utf8')) ?? []
  return (BigInt(`0x${held}`) & (1n << 24n)) !== 0n
}

function waitingOf({ containerStatuses }: PodStatus) {
  return containerStatuses?.[0]?.state?.waiting
}
