/** Machines with a firewall of their owner's, ufw: what the documents ask for is enough, and nothing of it is changed. */
import { existsSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { endpointProgram } from './support/endpoint-programs.ts'
import { agentLauncher } from './support/fleet.ts'
import { podManifest } from './support/manifests.ts'
import { mirror, requestTo, seenBy } from './support/mirror.ts'
import { skipWithout } from './support/missing-parts.ts'
import { image } from './support/pods.ts'
import { type RoutedMachine, routedMachines, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

const podRange = '10.244.0.0/16'
const noUfw = skipWithout('ufw', existsSync('/usr/sbin/ufw'))

/** ufw of this machine alone: its files are a copy, which only it sees. */
async function ownUfw({ dataDir, run }: RoutedMachine) {
  const [files, settings] = [join(dataDir, 'ufw'), join(dataDir, 'ufw-settings')]
  await mkdir(files, { recursive: true })
  await cp('/etc/ufw', files, { recursive: true })
  await cp('/etc/default/ufw', settings)
  const seen = `mount --bind ${files} /etc/ufw && mount --bind ${settings} /etc/default/ufw && mount -t tmpfs none /run/lock`
  return (...args: readonly string[]) =>
    run('unshare', '--mount', 'sh', '-c', `${seen} && exec ufw "$@"`, 'ufw', ...args)
}

/** Without counters and remarks. */
async function rulesOf({ run }: RoutedMachine): Promise<readonly string[]> {
  const text = `${await run('iptables-save')}\n${await run('ip6tables-save')}`
  return text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.replace(/\[\d+:\d+\]/, ''))
    .sort()
}

/** Docker's network of the pods, which a purge removes, with Docker's rules for it. */
async function removePodNetwork({ docker: { docker } }: RoutedMachine): Promise<void> {
  for (const { Name, Id } of await docker.listNetworks()) {
    if (Name.startsWith('bramble')) await docker.getNetwork(Id).remove()
  }
}

test('a fleet behind ufw', { skip: whyNoRoutedMachines() || noUfw }, async (t) => {
  const machines = await routedMachines(t, { controller: { clusterCIDR: podRange } })
  const { controller, first, second, stranger } = machines
  const firewalls = [await ownUfw(first), await ownUfw(second)] as const
  for (const ufw of firewalls) {
    // docs/recipes.md and docs/network.md; 22 is what an owner has open.
    await ufw('allow', '22/tcp')
    await ufw('allow', 'proto', 'udp', 'to', 'any', 'port', '8472:8473')
    await ufw('allow', 'from', podRange, 'to', '169.254.20.10', 'port', '53')
    await ufw('--force', 'enable')
  }
  const before = await Promise.all([rulesOf(first), rulesOf(second)])
  const shown = await firewalls[0]('status', 'verbose')
  t.match(shown, /Status: active[\s\S]*deny \(incoming\)/)

  const agents = [await first.startAgent(), await second.startAgent()]
  await controller.nodesReady(first.name, second.name)
  for (const [name, nodeName] of [
    ['pod-1', first.name],
    ['pod-2', second.name],
  ] as const) {
    const spec = { nodeName, terminationGracePeriodSeconds: 0 }
    const container = { ports: [{ containerPort: 80 }] }
    const pod = podManifest({ name, image, command: ['sh', '-c', mirror], spec, container })
    await controller.kubectlWith(pod, 'apply', '-f', '-')
    await controller.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=80s')
  }
  await controller.kubectl('expose', 'pod', 'pod-2', '--name=web', '--type=NodePort', '--port=80')
  const read = async (of: string, path: string) => await controller.kubectl('get', of, '-o', `jsonpath={${path}}`)
  const two = await read('pod/pod-2', '.status.podIP')
  const [clusterIP, nodePort] = [
    await read('service/web', '.spec.clusterIP'),
    await read('service/web', '.spec.ports[0].nodePort'),
  ]

  const reached = async (why: string) => {
    const fromPod = (address: string) => async () =>
      seenBy((await machines.inNetworkOf('pod-1', requestTo('/cgi-bin/from', address))).stdout) !== undefined
    await eventually(`a pod of the other machine answers, ${why}`, fromPod(two))
    await eventually(`a Service answers, ${why}`, fromPod(clusterIP))
    await eventually(`a NodePort answers, ${why}`, async () => {
      const asked = requestTo('/cgi-bin/from', first.address, Number(nodePort))
      return seenBy((await stranger.tryRun('sh', '-c', asked)).stdout) !== undefined
    })
    await eventually(`a name is found, ${why}`, async () => {
      const { code } = await machines.within('pod-1', 'nslookup web.default.svc.cluster.local')
      return code === 0
    })
    t.pass(why)
  }
  await reached('behind ufw')
  const program = endpointProgram(t, first.name, first.space)
  await program.listen(22)
  await program.listen(23)
  const asks = (port: number) => endpointProgram(t, 'stranger', stranger.space).ask({ address: first.address, port })
  t.match(await asks(22), [/^pi-1 /], 'a port that is open')
  t.same(await asks(23), ['silent'], 'a port that is not open stays closed')
  await Promise.all(firewalls.map((ufw) => ufw('reload')))
  await reached('after ufw reload')
  for (const ufw of firewalls) {
    await ufw('disable')
    await ufw('--force', 'enable')
  }
  await reached('after ufw was disabled and enabled')

  t.equal(await firewalls[0]('status', 'verbose'), shown)
  await controller.kubectl('delete', 'pod', 'pod-1', 'pod-2', '--now')
  for (const agent of agents) await agent.stop()
  for (const [index, machine] of [first, second].entries()) {
    await machine.run(agentLauncher, 'network', '--remove', '--data-dir', machine.dataDir)
    await removePodNetwork(machine)
    t.same(await rulesOf(machine), before[index], `the rules of ${machine.name} are what they were`)
  }
})
