import { test } from 'tap'
import { ownSpace, whyNoRules } from '../../../../test/support/own-space.ts'
import { baseRules } from '../../../network/base-rules.ts'
import { type LocalPod, policyRules } from '../../../network/policies/policy-rules.ts'
import { allRules } from '../../../network/rule-changes.ts'
import { ipv4Rules } from '../../../network/rule-family.ts'
import { isolatedPods } from '../nft-isolation.ts'
import { nftTable } from './nft.ts'

const pod = (name: string, ip: string, namespace = 'shop'): LocalPod => ({
  ...{ namespace, name, ip, labels: {}, ports: [], isStatic: false },
})

test('the pods that the kernel isolates are read from its rules', { skip: whyNoRules() }, async (t) => {
  const nft = await (await ownSpace(t)).tool('nft')
  t.same(await isolatedPods(nft), [], 'without a table')
  const table = nftTable(ipv4Rules, nft)
  const message = {
    ...{ epoch: 'e', version: 1, namespaces: ['shop'], sets: [] },
    policies: [
      { namespace: 'shop', name: 'a.b', podSelector: {}, ingress: [] },
      { namespace: 'shop', name: 'x'.repeat(253), podSelector: {}, egress: [{}] },
    ],
  }
  const pods = [pod('db.0', '10.244.1.12'), pod('web', '10.244.1.9'), pod('new', '10.244.1.5', 'other')]
  const rules = policyRules(message, new Map(pods.map((one) => [one.name, one])), ipv4Rules)
  await table.apply(allRules(undefined, [baseRules(ipv4Rules)], ipv4Rules).commands)
  t.same(await isolatedPods(nft), [], 'without policies')
  await table.apply(allRules(await table.list(), [baseRules(ipv4Rules), rules], ipv4Rules).commands)
  const directions = ['ingress', 'egress']
  t.same(await isolatedPods(nft), [
    { pod: undefined, address: '10.244.1.5', directions },
    { pod: 'shop/web', address: '10.244.1.9', directions },
    { pod: 'shop/db.0', address: '10.244.1.12', directions },
  ])
})
