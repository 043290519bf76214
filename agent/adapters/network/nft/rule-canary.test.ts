import { test } from 'tap'
import { ownSpace, whyNoRules } from '../../../../test/support/own-space.ts'
import { baseRules } from '../../../network/base-rules.ts'
import { guardTable } from '../../../network/peers/ipv6-guard.ts'
import { allRules } from '../../../network/rule-changes.ts'
import { ipv4Rules, ipv6Rules, ruleFamilies } from '../../../network/rule-family.ts'
import { nftTable } from './nft.ts'

test('the kernel answers while it has the rules, without a process', { skip: whyNoRules() }, async (t) => {
  const space = await ownSpace(t)
  const nft = await space.tool('nft')
  const program = `
    const { answersCanary } = await import(${JSON.stringify(new URL('rule-canary.js', import.meta.url).href)})
    console.log(JSON.stringify([await answersCanary({ family: 'IPv4' }), await answersCanary({ family: 'IPv6' })]))`
  const answers = async (): Promise<unknown> =>
    JSON.parse(await space.run(process.execPath, '--input-type=module', '-e', program))
  const apply = async (family: typeof ipv4Rules) =>
    nftTable(family, nft).apply(allRules(undefined, [baseRules(family)], family).commands)
  t.same(await answers(), [false, false], 'a closed port is not it')
  await apply(ipv4Rules)
  t.same(await answers(), [true, false])
  await apply(ipv6Rules)
  t.same(await answers(), [true, true])
  for (const { ip } of Object.values(ruleFamilies)) await space.run('nft', 'flush', 'table', ip, 'bramble')
  t.same(await answers(), [false, false], 'a table that another program has emptied')
  await nftTable(ipv6Rules, nft).apply(guardTable(['pods']))
  t.same(await answers(), [false, true], 'the guard of a fleet without IPv6')
  await space.run('nft', 'flush', 'ruleset')
  const output = '{ type filter hook output priority 0; policy drop; }'
  const others = ['add table inet other', `add chain inet other out ${output}`, 'add rule inet other out oif lo accept']
  await space.run('nft', others.join('; '))
  t.same(await answers(), [false, false], 'a firewall of others, which leaves the loopback interface alone')
})

test('as long as it answers nothing is listed', async (t) => {
  const table = (isAnswering: boolean) =>
    nftTable(ipv4Rules, '/nonexistent/nft', { isAnswering: async () => isAnswering })
  t.equal(await table(true).isIntact(false), true)
  await t.rejects(table(true).isIntact(true), { message: '/nonexistent/nft is not installed' })
  await t.rejects(table(false).isIntact(false), { message: '/nonexistent/nft is not installed' })
})
