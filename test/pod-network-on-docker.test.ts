/** The addresses of pods on an engine that other agents use or have used. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'tap'
import { dockerRuntime } from '../agent/adapters/docker/docker-runtime.ts'
import { sandboxOptions } from '../agent/pods/options/container-options.ts'
import { freePort } from '../agent/testing/free-port.ts'
import { memoryCheckpoint } from '../agent/testing/pod-world.ts'
import { aPod } from '../api/testing/builders.ts'
import { ownAddresses } from './support/addresses.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, nodeOnDocker, statusOf } from './support/pods.ts'
import { testVolumes } from './support/volumes.ts'

const run = promisify(execFile)
const script = 'while true; do sleep 1; done'

test('networks of pods on Docker', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const spec = { terminationGracePeriodSeconds: 0 }
  const pod = (name: string) => aPod({ name, uid: `uid-${name}`, containers: [container('main', script)], spec })
  const networkOf = async (node: string, podCIDR: string) =>
    await dockerd.docker.createNetwork({
      Name: `bramble_${node}_${podCIDR.replace('/', '-')}`,
      IPAM: { Driver: 'default', Config: [{ Subnet: podCIDR }] },
      Labels: { 'bramble.dev/node': node },
    })
  const nodesWithNetworks = async () => {
    const filters = JSON.stringify({ label: ['bramble.dev/node'] })
    return (await dockerd.docker.listNetworks({ filters })).map(({ Labels }) => Labels?.['bramble.dev/node'])
  }

  t.test('ten pods that start at once on a fresh node all start, and none has to be tried again', async (t) => {
    const range = await ownAddresses()
    const node = nodeOnDocker(t, dockerd)
    const names = Array.from({ length: 10 }, (_, index) => `pod-${index}`)
    node.publishDesired({ pods: names.map(pod), podCIDR: `${range}.0/24` })
    for (const name of names) await node.until(name, isReady)
    t.same(
      node.eventTexts().filter((line) => /FailedCreatePodSandBox/.test(line)),
      [],
    )
    t.same(await nodesWithNetworks(), ['pi-01'])
  })

  t.test("a pod asks the servers of the machine, not the engine's", async (t) => {
    const range = await ownAddresses()
    const { store } = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: store })
    const reads = container('main', 'cat /etc/resolv.conf > /dev/termination-log')
    const reader = aPod({
      name: 'reader',
      uid: 'uid-reader',
      containers: [reads],
      spec: { ...spec, restartPolicy: 'Never' },
    })
    node.publishDesired({ pods: [reader], podCIDR: `${range}.0/24` })
    const { containerStatuses } = await node.until('reader', ({ phase }) => phase === 'Succeeded')
    t.equal(containerStatuses?.[0]?.state?.terminated?.message, 'search lan\nnameserver 192.0.2.53\n')
  })

  t.test('a network of an earlier node that no container uses is replaced', async (t) => {
    const range = await ownAddresses()
    await networkOf('earlier', `${range}.0/24`)
    const node = nodeOnDocker(t, dockerd)
    node.publishDesired({ pods: [pod('after')], podCIDR: `${range}.0/24` })
    const { podIP } = await node.until('after', isReady)
    t.ok(podIP?.startsWith(`${range}.`), `has ${podIP}`)
    t.notOk((await nodesWithNetworks()).includes('earlier'))
  })

  t.test(
    'another fleet’s network with containers stays, the node reports it, and takes over when they are gone',
    async (t) => {
      const range = await ownAddresses()
      const network = await networkOf('live', `${range}.0/24`)
      // Stopped: it would not start again without its network.
      const user = await dockerd.docker.createContainer({
        Image: image,
        HostConfig: { NetworkMode: network.id },
      })
      const runtime = dockerRuntime({ socketPath: dockerd.socket, nodeName: 'pi-01' })
      const node = nodeOnDocker(t, dockerd, { runtime })
      node.publishDesired({ pods: [pod('second')], podCIDR: `${range}.0/24` })
      const why = () => statusOf(node.status('second') ?? {}, 'main')?.state?.waiting?.message ?? ''
      await eventually(() => why() !== '')
      t.match(why(), /Failed to create pod sandbox: .* of node live, which 1 container of this machine use/)
      t.match(await runtime.podNetworkProblem(), /of node live/)
      await user.remove({ force: true })
      t.equal(await runtime.podNetworkProblem(), undefined)
      await node.until('second', isReady)
    },
  )

  t.test('pods of a fleet with a network have no IPv6, and IPv4 host ports alone', async (t) => {
    const range = await ownAddresses()
    const hostPort = await freePort()
    const closed: string[] = []
    const podNetwork = {
      wanted: () => ({ mode: 'routed', podsMayMove: true }) as const,
      prepared: async () => undefined,
      closeIPv6: async (bridge: string) => void closed.push(bridge),
      reflect: async () => undefined,
    }
    const runtime = dockerRuntime({ socketPath: dockerd.socket, nodeName: 'pi-01', podNetwork })
    const start = (name: string, hostIP = '') => {
      const options = sandboxOptions(pod(name), 0, { podCIDR: `${range}.0/24` })
      return runtime.runSandbox({
        ...options,
        ports: [{ containerPort: 80, hostPort, protocol: 'TCP', hostIP }],
      })
    }
    for (const hostIP of ['::', 'fd00:7::1', '::ffff:192.0.2.1']) {
      await t.rejects(start('six', hostIP), {
        name: 'RuntimeError',
        message: `Cannot start the sandbox of pod default/six: hostIP ${hostIP} of its hostPort ${hostPort} is an IPv6 address, which pods of this node do not have (leave hostIP out, or set an IPv4 address of the node)`,
      })
    }
    const id = await start('four')
    t.teardown(() => runtime.removeContainer(id))
    const { NetworkSettings, State } = await dockerd.docker.getContainer(id).inspect()
    t.same(NetworkSettings.Ports, { '80/tcp': [{ HostIp: '0.0.0.0', HostPort: `${hostPort}` }] })
    const [[name = '', { GlobalIPv6Address, NetworkID } = {}] = []] = Object.entries(NetworkSettings.Networks)
    t.equal(GlobalIPv6Address, '')
    t.match(await dockerd.docker.getNetwork(NetworkID ?? '').inspect(), { Name: name, EnableIPv6: false })
    t.same(closed, [`br-${NetworkID?.slice(0, 12)}`], 'before it started')
    const { stdout } = await run('nsenter', [`--net=/proc/${State.Pid}/ns/net`, 'ip', '-6', 'address', 'show', 'eth0'])
    t.equal(stdout, '', 'not even one of its link')
    const earlier = await dockerd.docker.createContainer({
      Image: image,
      Cmd: ['sleep', '600'],
      Labels: { 'bramble.dev/node': 'pi-01' },
      ExposedPorts: { '80/tcp': {} },
      HostConfig: { NetworkMode: name, PortBindings: { '80/tcp': [{ HostPort: `${await freePort()}` }] } },
    })
    await earlier.start()
    await runtime.adjustPodNetwork()
    await t.rejects(
      earlier.inspect(),
      { message: /no such container/i },
      'one whose port is open on IPv6 addresses, too',
    )
    t.ok((await runtime.listContainers()).some((one) => one.id === id))
  })

  t.test(
    'pods of a fleet with a network have their addresses again after a power cut, without a controller',
    async (t) => {
      const range = await ownAddresses()
      const podNetwork = {
        wanted: () => ({ mode: 'routed', podsMayMove: true }) as const,
        prepared: async () => undefined,
        closeIPv6: async () => undefined,
        reflect: async () => undefined,
      }
      const runtime = dockerRuntime({ socketPath: dockerd.socket, nodeName: 'pi-01', podNetwork })
      const checkpoint = memoryCheckpoint()
      const node = nodeOnDocker(t, dockerd, { runtime, checkpoint })
      const desired = { podCIDR: `${range}.0/24`, clusterDomain: 'cluster.local' }
      node.publishDesired({ ...desired, pods: [pod('first')] })
      await node.until('first', isReady)
      const names = ['one', 'two', 'three']
      node.publishDesired({ ...desired, pods: ['first', ...names].map(pod) })
      const addresses = new Map<string, string | undefined>()
      for (const name of names) addresses.set(name, (await node.until(name, isReady)).podIP)
      node.publishDesired({ ...desired, pods: names.map(pod) })
      const saved = () => JSON.stringify(Object.keys(checkpoint.content?.addresses ?? {}))
      await eventually(() => !saved().includes('uid-first'), saved)
      t.notOk([...addresses.values()].includes(`${range}.2`), 'the first address is free')
      await node.stop()
      await dockerd.cutPower()
      await dockerd.start()

      const next = nodeOnDocker(t, dockerd, { runtime, checkpoint })
      for (const name of names) {
        const { podIP } = await next.until(name, isReady)
        t.equal(podIP, addresses.get(name), name)
      }

      await next.stop()
      const ip = addresses.get('one') ?? ''
      const id = await runtime.runSandbox({ ...sandboxOptions(pod('other'), 0, desired), ip })
      const other = (await runtime.listContainers()).find((one) => one.id === id)
      t.match(other?.ip, `${range}.`)
      t.not(other?.ip, ip, 'another pod has the address: this one gets the next')
    },
  )
})
