import { test } from 'tap'
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import type { KnownNetwork } from './live-network.ts'
import { type NetworkSources, networkCommand } from './network-command.ts'
import { noProofs } from './probes/proven-network.ts'
import { wholeMachine } from './testing/network-machine.ts'
import { aService, endpointOn } from './testing/services.ts'

const message: NetworkMessage = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [{ name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.1', segment: 'lan' }],
}
const withEndpoint = (ip: string): KnownNetwork => ({
  message,
  proofs: noProofs,
  services: [aService({ addresses: [endpointOn('pi-1', ip)] })],
})
async function shown(sources: NetworkSources, ...argv: readonly string[]) {
  let [out, err] = ['', '']
  const code = await networkCommand(argv, {
    sourcesFor: () => sources,
    defaults: { root: '/', dataDir: '/var/lib/bramble' },
    stdout: (text) => {
      out += text
    },
    stderr: (text) => {
      err += text
    },
  })
  return { code, out, err }
}

test('what the agent that runs has is shown, and not what it has saved', async (t) => {
  const sources = wholeMachine({
    liveNetwork: async () => withEndpoint('10.244.1.9'),
    savedNetwork: async () => withEndpoint('10.244.1.5'),
  })
  const { code, out, err } = await shown(sources, 'shop/web')
  t.same([code, err], [0, ''])
  t.match(out, /80\/TCP +10\.244\.1\.9:8080 +pi-1 +yes +this node\n$/)
  t.notMatch(out, /checkpoint/)
  t.match(JSON.parse((await shown(sources, '-o', 'json')).out), { node: 'pi-1', source: 'agent' })
})

test('without an agent that answers the checkpoint is shown, and named', async (t) => {
  const sources = wholeMachine({
    liveNetwork: async () => {
      throw new Error('No agent answers at /run/bramble/a.sock')
    },
    savedNetwork: async () => withEndpoint('10.244.1.5'),
  })
  const note = /\n\nFrom the checkpoint, which may be older\. No agent answers at \/run\/bramble\/a\.sock\n$/
  const path = await shown(sources, 'shop/web')
  t.match(path.out, /10\.244\.1\.5:8080/)
  t.match(path.out, note)
  const report = await shown(sources)
  t.equal(report.code, 0)
  t.match(report.out, note)
  t.match(JSON.parse((await shown(sources, 'shop/web', '-o', 'json')).out), { name: 'shop/web', source: 'checkpoint' })
})

test('a checkpoint that cannot be read is an error where no agent answers', async (t) => {
  const fails = async () => {
    throw new Error('Cannot read network.json')
  }
  t.match(await shown(wholeMachine({ liveNetwork: fails, savedNetwork: fails })), {
    code: 1,
    out: '',
    err: /Cannot read/,
  })
})

test('what belongs to another agent that runs is not removed', async (t) => {
  const removed: string[] = []
  const table = { isIntact: async () => true, remove: async () => void removed.push('table') }
  const received = async () => withEndpoint('10.244.1.9')
  const portTable = { remove: async (name: string) => void removed.push(name) }
  const machine = { ...wholeMachine({ liveNetwork: received, savedNetwork: received }), table, portTable }
  const refused = await shown({ ...machine, otherAgent: async () => 42 }, '--remove')
  t.match(refused, { code: 1, out: '', err: /those of another agent, process 42\. Stop it first/ })
  t.same(removed, ['bramble-pi-1'], 'rules of the ports of its own pods are')
  t.equal((await shown(machine, '--remove')).code, 0)
  t.same(removed, ['bramble-pi-1', 'bramble-pi-1', 'table'])
})

test('a node that has no part in the network of the fleet shows why, also where programs are missing', async (t) => {
  const obstacle = { reason: 'ProgramsMissing', found: 'nft is not installed', remedy: 'Install it' } as const
  const isIntact = () => Promise.reject(new Error('nft is not installed'))
  const liveNetwork = async () => ({ ...withEndpoint('10.244.1.9'), message: undefined, obstacle })
  const table = { isIntact, remove: async () => undefined }
  t.match(await shown({ ...wholeMachine({ liveNetwork, savedNetwork: liveNetwork }), table }), {
    code: 1,
    err: '',
    out: /it is not part of the network of the fleet\n\nProblems:\n- nft is not installed\. Pods of this node run .*\. Install it\n/,
  })
})
