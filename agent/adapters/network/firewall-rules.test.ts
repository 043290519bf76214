import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { readFirewall } from './firewall-rules.ts'

/** Programs that print their own name, and the arguments that they were given. */
function programs(t: Test, ...names: readonly ('nft' | 'legacy' | 'usual')[]) {
  const folder = testFolder(t)
  for (const name of names) {
    const path = join(folder, name)
    writeFileSync(path, `#!/bin/sh\necho "${name} $*"\n`)
    chmodSync(path, 0o755)
  }
  return { nft: join(folder, 'nft'), legacy: join(folder, 'legacy'), usual: join(folder, 'usual') }
}

const all = (program: string, table: string) => `${program} --wait 2 --table ${table} --list-rules`

test('rules of both iptables are read, those of the older one where the kernel has its tables', async (t) => {
  const tools = programs(t, 'nft', 'legacy', 'usual')
  t.same(await readFirewall({ ...tools, legacyTables: async () => ['nat', ''] }), {
    nat: [all('nft', 'nat'), all('legacy', 'nat')],
    filter: [all('nft', 'filter')],
  })
})

test('a machine that has iptables by that name only', async (t) => {
  const tools = programs(t, 'usual')
  t.same(await readFirewall({ ...tools, legacyTables: async () => [] }), {
    nat: [all('usual', 'nat')],
    filter: [all('usual', 'filter')],
  })
})

test('without iptables nothing is known of the rules', async (t) => {
  t.equal(await readFirewall({ ...programs(t), legacyTables: async () => [] }), undefined)
})
