import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import { test } from 'tap'
import { dockerRuntime } from '../agent/adapters/docker/docker-runtime.ts'
import { aDevice } from '../agent/testing/builders.ts'
import type { Container, Pod, PodSpec } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { ownAddresses } from './support/addresses.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, nodeOnDocker, outputOf } from './support/pods.ts'
import { testVolumes } from './support/volumes.ts'

function pod(name: string, script: string, spec: Partial<PodSpec> = {}, more: Partial<Container> = {}): Pod {
  const containers = [container('main', `${script}; exec sleep 1000`, more)]
  return aPod({ name, uid: `uid-${name}`, containers, spec: { terminationGracePeriodSeconds: 0, ...spec } })
}

test('rights and names of pods on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const shows = async (uid: string, text: string) => {
    let last = ''
    const shown = async () => {
      last = await outputOf(dockerd, uid, 'main').catch(() => '') // It is still being made.
      return last === text
    }
    await eventually(shown, () => `${uid} shows ${JSON.stringify(last)}`)
  }

  t.test('a container runs as the user it is configured for, with the rights it is given', async (t) => {
    const volumes = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: volumes.store })
    const securityContext = { runAsUser: 1000, runAsGroup: 1001, fsGroup: 2000, supplementalGroups: [3000] }
    const script =
      'echo $(id -u) $(id -g) $(id -G); touch /data/x; stat -c %g /data/x; touch /y 2>/dev/null || echo read only'
    const own = { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
    const seen = 'grep -E "NoNewPrivs|CapBnd" /proc/self/status | tr -d "\\t"'
    node.want(
      pod(
        'user',
        `${script}; ${seen}`,
        { securityContext, volumes: [{ name: 'd', emptyDir: {} }] },
        {
          securityContext: own,
          volumeMounts: [{ name: 'd', mountPath: '/data' }],
        },
      ),
      pod('root', 'true', { securityContext: { runAsNonRoot: true } }),
      pod(
        'profile',
        'true',
        {},
        { securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'none.json' } } },
      ),
      pod('sysctl', 'cat /proc/sys/net/ipv4/ip_unprivileged_port_start', {
        securityContext: {
          sysctls: [{ name: 'net/ipv4/ip_unprivileged_port_start', value: '80' }],
          seLinuxOptions: { level: 's0:c1,c2' },
        },
      }),
      pod('unsafe', 'true', { securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } }),
    )
    await shows('uid-user', '1000 1001 1001 2000 3000\n2000\nread only\nCapBnd:0000000000000000\nNoNewPrivs:1\n')
    await shows('uid-sysctl', '80\n')
    await eventually(() => node.status('unsafe')?.reason === 'SysctlForbidden')
    const waiting = (name: string) => node.status(name)?.containerStatuses?.[0]?.state?.waiting
    await eventually(() => waiting('root')?.reason === 'CreateContainerConfigError')
    t.match(waiting('root')?.message, /^container has runAsNonRoot and image will run as root \(pod: "root_default/)
    await eventually(() => waiting('profile')?.reason === 'CreateContainerError')
    t.match(waiting('profile')?.message, /Cannot read seccomp profile none\.json/)
  })

  t.test('the kernel confines a container as its profile demands', async (t) => {
    const seccompDirectory = testFolder(t, {
      'no-mkdir.json': JSON.stringify({
        defaultAction: 'SCMP_ACT_ALLOW',
        syscalls: [{ names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO' }],
      }),
    })
    const runtime = dockerRuntime({ socketPath: dockerd.socket, nodeName: 'pi-01', seccompDirectory })
    const node = nodeOnDocker(t, dockerd, { runtime })
    const script =
      'grep Seccomp: /proc/self/status | tr -d "\\t"; mkdir /tmp/x 2>/dev/null && echo made || echo refused'
    const guarded = (name: string, seccompProfile?: { readonly type: string; readonly localhostProfile?: string }) =>
      pod(name, script, {}, seccompProfile === undefined ? {} : { securityContext: { seccompProfile } })
    node.want(
      guarded('usual'),
      guarded('open', { type: 'Unconfined' }),
      guarded('own', { type: 'Localhost', localhostProfile: 'no-mkdir.json' }),
    )
    await shows('uid-usual', 'Seccomp:2\nmade\n')
    await shows('uid-open', 'Seccomp:0\nmade\n')
    await shows('uid-own', 'Seccomp:2\nrefused\n')
    t.pass('each of them')
  })

  t.test('a pod that AppArmor is to guard does not run without it, and no other waits for it', async (t) => {
    if (existsSync('/sys/module/apparmor')) return t.comment('skipped: the kernel of this machine has AppArmor')
    const node = nodeOnDocker(t, dockerd)
    const appArmorProfile = { type: 'Localhost', localhostProfile: 'web' }
    const open = { appArmorProfile: { type: 'Unconfined' } }
    node.want(
      pod('guarded', 'true', {}, { securityContext: { appArmorProfile } }),
      pod('unguarded', 'true', {}, { securityContext: open }),
    )
    await node.until('unguarded', ({ phase }) => phase === 'Running')
    const statusText = () => JSON.stringify(node.status('guarded') ?? {})
    await eventually(
      () => /Cannot enforce AppArmor: AppArmor is not enabled on the host/.test(statusText()),
      statusText,
    )
    t.equal(
      (await node.runtime.listContainers('uid-guarded')).filter((one) => one.identity.kind === 'container').length,
      0,
    )
  })

  t.test('a pod sees the shared memory of its node only where it asks for it', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const script = 'readlink /proc/self/ns/ipc'
    node.want(pod('shares', script, { hostIPC: true }), pod('apart', script))
    const ours = `${await readlink('/proc/self/ns/ipc')}\n`
    await shows('uid-shares', ours)
    await node.until('apart', ({ phase }) => phase === 'Running')
    let own = ''
    await eventually(async () => {
      own = await outputOf(dockerd, 'uid-apart', 'main')
      return own !== ''
    })
    t.not(own, ours)
  })

  t.test('a registry is asked with the credentials of the pod', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const asked: string[] = []
    const registry = createServer(({ headers: { authorization = '' } }, response) => {
      asked.push(authorization)
      response.writeHead(authorization === '' ? 401 : 404, { 'www-authenticate': 'Basic realm="test"' }).end()
    }).listen(0, '127.0.0.1')
    await once(registry, 'listening')
    t.teardown(() => registry.close())
    const address = registry.address()
    const host = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
    const auths = { [host]: { username: 'anna', password: 'secret' } }
    const pullSecret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'pull', namespace: 'default' },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') },
    } as const
    const imagePullSecrets = [{ name: 'pull' }, { name: 'other' }]
    node.publishDesired({
      pods: [pod('private', 'true', { imagePullSecrets }, { image: `${host}/app:1` })],
      secrets: [pullSecret],
    })
    const expected = `Basic ${Buffer.from('anna:secret').toString('base64')}`
    await eventually(
      () => asked.includes(expected),
      () => JSON.stringify([asked, node.eventTexts()]),
    )
    await node.until('private', (status) => status.containerStatuses?.[0]?.state?.waiting?.reason === 'ErrImagePull')
    t.ok(
      node
        .eventTexts()
        .some((line) =>
          line.startsWith('FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (other)'),
        ),
    )
    t.notMatch(JSON.stringify(node.events), /secret"|c2VjcmV0/, 'no event contains it')
  })

  t.test('pods have addresses of their node, and those that run keep theirs', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const [first, second] = [pod('first', 'true'), pod('second', 'true')]
    node.publishDesired({ pods: [first] })
    const before = await node.until('first', ({ phase }) => phase === 'Running')
    t.match(before.podIP, new RegExp(`^${dockerd.subnet}\\.`), 'the engine’s own, as long as the node has none')
    const range = await ownAddresses()
    const podCIDR = `${range}.0/24`
    node.publishDesired({ pods: [first, second], podCIDR })
    const status = await node.until('second', ({ phase }) => phase === 'Running')
    t.equal(status.podIP?.split('.').slice(0, 3).join('.'), range)
    t.same(node.status('first')?.podIP, before.podIP)
    node.publishDesired({ pods: [] })
    await eventually(() => node.gone.length === 2)
    const networks = await dockerd.docker.listNetworks({
      filters: JSON.stringify({ label: ['bramble.dev/node=pi-01'] }),
    })
    t.equal(networks.length, 1)
    for (const { Id } of networks) await dockerd.docker.getNetwork(Id).remove()
  })

  t.test('a device is given to the container that asked for it, and to no other', async (t) => {
    const devices = new Map([['bramble.dev/fuse', [aDevice('/dev/fuse')]]])
    const allocatable = { cpu: '4', memory: '4Gi', pods: '110', 'bramble.dev/fuse': '1' }
    const node = nodeOnDocker(t, dockerd, { devices, allocatable })
    const script = '[ -c /dev/fuse ] && echo there || echo not there'
    const resources = { limits: { 'bramble.dev/fuse': '1' } }
    node.want(pod('asks', script, {}, { resources }), pod('other', script))
    await shows('uid-asks', 'there\n')
    await shows('uid-other', 'not there\n')
    node.want(pod('asks', script, {}, { resources }), pod('late', script, {}, { resources }))
    t.match(await node.until('late', ({ phase }) => phase === 'Failed'), { reason: 'OutOfbramble.dev/fuse' })
  })

  t.test('a pod has its host names, resolves its host aliases, and uses its DNS servers', async (t) => {
    const { store } = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: store })
    const hostAliases = [{ ip: '192.0.2.7', hostnames: ['camera.lan', 'camera'] }]
    const dnsConfig = {
      nameservers: ['192.0.2.9'],
      searches: ['example.com'],
      options: [{ name: 'ndots', value: '3' }],
    }
    const resolver = 'grep -v "^#" /etc/resolv.conf | sort'
    node.want(
      pod('named', 'hostname; hostname -f; head -n 1 /etc/hosts; grep "^192.0.2.7" /etc/hosts', {
        hostname: 'web',
        subdomain: 'shop',
        hostAliases,
      }),
      pod('own', resolver, { dnsPolicy: 'None', dnsConfig }),
      pod('more', resolver, { dnsPolicy: 'Default', dnsConfig }),
      pod('host', '[ -d /proc/1/fd ]; cat /proc/1/comm | grep -vc sleep', { hostPID: true }),
    )
    await shows(
      'uid-named',
      'web\nweb.shop.default.svc.cluster.local\n# Kubernetes-managed hosts file.\n192.0.2.7\tcamera.lan\tcamera\n',
    )
    await shows('uid-own', 'nameserver 192.0.2.9\noptions ndots:3\nsearch example.com\n')
    await shows('uid-more', 'nameserver 192.0.2.53\nnameserver 192.0.2.9\noptions ndots:3\nsearch lan example.com\n')
    await shows('uid-host', '1\n')
    t.pass('all of them')
  })
})
