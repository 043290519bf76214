import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import type { PoliciesMessage } from '../../../api/network/node-policies.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { policyCheckpoint } from './policy-checkpoint.ts'

const message: PoliciesMessage = {
  ...{ epoch: 'e', version: 3, namespaces: ['shop'] },
  sets: [{ name: 'ab', kind: 'address', elements: ['10.244.1.5'] }],
  policies: [{ namespace: 'shop', name: 'deny', podSelector: {}, ingress: [] }],
}

test('policies that were saved are loaded by the next agent, and one that was damaged is not taken for none', async (t) => {
  const folder = testFolder(t)
  const log = quietLog(t, 'The checkpoint of the policies cannot be used')
  const checkpoint = policyCheckpoint(folder, log)
  t.equal(await checkpoint.load(), undefined)
  await checkpoint.save(message)
  t.same(await policyCheckpoint(folder, log).load(), message)
  const path = join(folder, 'policies.json')
  const flipped = (await readFile(path, 'utf8')).replace('deny', 'dany')
  for (const damaged of [flipped, '']) {
    await writeFile(path, damaged)
    t.equal(await checkpoint.load(), 'damaged')
  }
  await checkpoint.clear()
  t.equal(await checkpoint.load(), undefined)
  await checkpoint.clear()
})
