import { test } from 'tap'
import { cidrsOverlap, parseCidr } from '../../api/text/cidr.ts'
import { defaultNodeCidrSettings } from '../../broker-controller/controllers/node-cidr.ts'
import { machineAddresses } from './addresses.ts'

test('no machine and no engine of a test has addresses of the pods of a fleet', async (t) => {
  const pods = parseCidr(defaultNodeCidrSettings.clusterCIDR)
  const made = Array.from({ length: 20_000 }, () => parseCidr(`${machineAddresses()}.0/24`))
  t.notOk(made.find((one) => pods === undefined || one === undefined || cidrsOverlap(one, pods)))
})
