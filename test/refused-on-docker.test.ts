import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import { test } from 'tap'
import { aDevice } from '../agent/testing/builders.ts'
import { freePort } from '../agent/testing/free-port.ts'
import type { Container, PodStatus } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { ownAddresses } from './support/addresses.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, nodeOnDocker, statusOf } from './support/pods.ts'
import { testVolumes } from './support/volumes.ts'

const run = promisify(execFile)
const script = 'exec sleep 1000'
/** Why its container waits, or ''. */
const whyNot = (status: PodStatus) => statusOf(status, 'main')?.state?.waiting?.message ?? ''

test('pods that cannot be, on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const own = await dockerd.docker.createContainer({ Image: image, User: 'anna' })
  await own.commit({ repo: 'test/anna', tag: '1' })
  await own.remove()

  t.test('what the engine refuses is reported with its field and a remedy, and stops no other pod', async (t) => {
    const { store, folder } = await testVolumes(t)
    const devices = new Map([['bramble.dev/cam', [aDevice('/dev/not-there')]]])
    const allocatable = { cpu: '4', memory: '4Gi', pods: '110', 'bramble.dev/cam': '1' }
    const node = nodeOnDocker(t, dockerd, { volumes: store, devices, allocatable })
    const mounts = (...mountPaths: readonly string[]) => ({
      volumeMounts: mountPaths.map((mountPath, index) => ({
        name: index === 0 ? 'read-only' : 'd',
        mountPath,
        readOnly: index === 0,
      })),
    })
    const cases: readonly (readonly [string, Partial<Container>, string, RegExp])[] = [
      [
        'env',
        { env: [{ name: 'BIG', value: 'x'.repeat(200_000) }] },
        'CreateContainerConfigError',
        /^env BIG has 200005 bytes/,
      ],
      [
        'device',
        { resources: { limits: { 'bramble.dev/cam': 1 } } },
        'RunContainerError',
        /"\/dev\/not-there".*plug it in/,
      ],
      [
        'file',
        mounts('/etc/passwd/x'),
        'RunContainerError',
        /at "\/etc\/passwd\/x".*\(volumeMounts\[\]\.mountPath: a file can/,
      ],
      ['proc', mounts('/proc/x'), 'RunContainerError', /"\/proc\/x" cannot be mounted.*outside \/proc/],
      ['nested', mounts('/data', '/data/sub'), 'RunContainerError', /"\/data\/sub".*mounted read-only/],
      [
        'twice',
        mounts('/a', '/a/'),
        'CreateContainerError',
        /\/a\/ \(volumeMounts\[\]\.mountPath: use every path once only\)/,
      ],
      ['user', { image: 'test/anna:1' }, 'RunContainerError', /user anna.*set securityContext\.runAsUser to a number/],
      [
        'right',
        { securityContext: { capabilities: { add: ['FLY'] } } },
        'CreateContainerError',
        /CAP_FLY.*capabilities\(7\)/,
      ],
      [
        'small',
        { resources: { limits: { memory: '1Mi' } } },
        'CreateContainerError',
        /resources\.limits\.memory: set 6Mi/,
      ],
      ['command', { command: ['/no/such'] }, 'RunContainerError', /^exec: "\/no\/such": .*\(command: /],
    ]
    const volumes = [
      { name: 'd', emptyDir: {} },
      { name: 'read-only', hostPath: { path: folder } },
    ]
    const spec = { terminationGracePeriodSeconds: 0, volumes }
    const refused = cases.map(([name, more]) =>
      aPod({ name, uid: `uid-${name}`, containers: [container('main', script, more)], spec }),
    )
    const well = aPod({ name: 'well', uid: 'uid-well', containers: [container('main', script)], spec })
    node.want(...refused, well)
    await node.until('well', isReady)
    for (const [name, , reason, message] of cases) {
      const status = await node.until(name, (one) => statusOf(one, 'main')?.state?.waiting?.reason === reason)
      t.match(statusOf(status, 'main')?.state?.waiting?.message, message, name)
    }
    t.equal(statusOf(node.status('well') ?? {}, 'main')?.restartCount, 0)
    const failed = await node.until('command', (one) => statusOf(one, 'main')?.lastState?.terminated !== undefined)
    t.match(statusOf(failed, 'main')?.lastState?.terminated, { reason: 'StartError', exitCode: 128 })
  })

  t.test('a port that another process has is reported, and taken once it is free', async (t) => {
    const hostPort = await freePort()
    const taker = createServer().listen(hostPort, '0.0.0.0')
    await once(taker, 'listening')
    t.teardown(() => taker.close())
    const node = nodeOnDocker(t, dockerd)
    const spec = { terminationGracePeriodSeconds: 0 }
    const wants = (name: string) =>
      aPod({
        name,
        uid: `uid-${name}`,
        containers: [container('main', script, { ports: [{ containerPort: 80, hostPort }] })],
        spec,
      })
    node.want(wants('port'))
    t.match(
      whyNot(await node.until('port', (status) => whyNot(status) !== '')),
      /^Failed to create pod sandbox: .*address already in use \(ports\[\]\.hostPort: a process outside of pods/,
    )
    taker.close()
    await node.until('port', isReady)
    node.want(wants('port'), wants('second'))
    t.match(await node.until('second', ({ phase }) => phase === 'Failed'), { reason: 'NodePorts' })
  })

  t.test('a range of addresses that others have is reported, and taken once it is free', async (t) => {
    const [taken, range] = [await ownAddresses(), await ownAddresses()]
    const link = `bd${randomBytes(4).toString('hex')}`
    const node = nodeOnDocker(t, dockerd)
    const spec = { terminationGracePeriodSeconds: 0 }
    const pod = (name: string) => aPod({ name, uid: `uid-${name}`, containers: [container('main', script)], spec })
    t.teardown(async () => {
      await run('ip', ['link', 'delete', link]).catch(() => undefined)
    })

    const other = await dockerd.docker.createNetwork({
      Name: 'other',
      IPAM: { Driver: 'default', Config: [{ Subnet: `${taken}.0/25` }] },
      Internal: true,
    })
    node.publishDesired({ pods: [pod('docker')], podCIDR: `${taken}.0/24` })
    t.match(
      whyNot(await node.until('docker', (status) => whyNot(status) !== '')),
      /Failed to create pod sandbox: .* Docker network other .*: if nothing needs it, run 'docker network rm other'/,
    )
    await eventually(() => /FailedCreatePodSandBox: .*10\./.test(node.eventTexts().join('\n')))
    await other.remove()
    const status = await node.until('docker', isReady)
    t.ok(status.podIP?.startsWith(`${taken}.`), `has ${status.podIP}`)

    await run('ip', ['link', 'add', link, 'type', 'bridge'])
    await run('ip', ['address', 'add', `${range}.1/24`, 'dev', link])
    await run('ip', ['link', 'set', link, 'up'])
    node.publishDesired({ pods: [pod('docker'), pod('route')], podCIDR: `${range}.0/24` })
    const refused = await node.until('route', (status) => whyNot(status) !== '')
    t.match(whyNot(refused), `belong to the network ${range}.0/24 on ${link} of this machine`)
    t.ok(isReady(node.status('docker') ?? {}))
    await run('ip', ['link', 'delete', link])
    const { podIP } = await node.until('route', isReady)
    t.ok(podIP?.startsWith(`${range}.`), `has ${podIP}`)
  })
})
