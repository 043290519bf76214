import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { ipv4Rules } from '../../network/rule-family.ts'
import { networkOwner, ownedForwarding, ownedHost, ownedTable } from './network-owner.ts'

test('one agent of a machine has the network, and another one changes and removes nothing', async (t) => {
  const root = testFolder(t)
  const calls: string[] = []
  const call = async (name: string) => void calls.push(name)
  const table = {
    family: ipv4Rules,
    list: async () => undefined,
    apply: call,
    isIntact: async () => true,
    remove: () => call('remove'),
  }
  const host = {
    links: async () => ({ routes: [], hasTunnel: false, hasWireguard: false }),
    made: async () => ({ routes: [], tunnelPeers: [] }),
    apply: async () => call('steps').then(() => []),
    acceptMarked: () => call('accept'),
    refuseMarked: () => call('refuse'),
  }
  const [first, second] = [networkOwner(root), networkOwner(root)]
  const mine = ownedTable(table, first)
  await mine.apply('rules')
  await mine.apply('more')
  const forwarding = { enable: () => call('forward'), restore: () => call('restore') }
  const otherForwarding = ownedForwarding(forwarding, second)
  const [others, otherHost] = [ownedTable(table, second), ownedHost(host, second)]
  const message = /^Another agent of this machine, process \d+, has the network of pods/
  await t.rejects(others.list(), { message })
  await t.rejects(others.apply('other rules'), { message })
  await t.rejects(others.isIntact(false), { message })
  await t.rejects(otherHost.made(), { message })
  await t.rejects(otherHost.apply([]), { message })
  await t.rejects(otherHost.acceptMarked(false), { message })
  await others.remove()
  await otherHost.refuseMarked()
  await t.rejects(otherForwarding.enable(), { message })
  await otherForwarding.restore()
  t.same(calls, ['rules', 'more'])
  await ownedHost(host, first).acceptMarked(false)
  await mine.remove()
  await ownedHost(host, first).refuseMarked()
  await ownedForwarding(forwarding, first).restore()
  t.same(calls.slice(2), ['accept', 'remove', 'refuse', 'restore'])
})

test('a lock that cannot be written keeps no agent from its network', async (t) => {
  await networkOwner(`${testFolder(t, { file: '' })}/file`).claim()
})
