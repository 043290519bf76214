import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { networkToolProblem } from './network-tools.ts'

test('programs that are missing and rights that are missing are a problem with a remedy', async (t) => {
  const folder = testFolder(t)
  const program = async (name: string, script: string) => {
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(folder, name), 0o755)
    return join(folder, name)
  }
  const fine = await program('fine', 'exit 0')
  const absent = join(folder, 'absent')
  t.equal(await networkToolProblem({ nft: fine, ip: fine, iptables: fine }), undefined)
  t.same(await networkToolProblem({ nft: absent, ip: fine, iptables: absent }), {
    reason: 'ProgramsMissing',
    found: 'nft and iptables are not installed',
    remedy: "Run 'apt-get install nftables iptables', then restart the agent",
  })
  t.match(await networkToolProblem({ nft: fine, ip: absent, iptables: fine }), {
    found: 'ip is not installed',
    remedy: /install iproute2/,
  })
  const denied = await program('denied', 'echo "Operation not permitted (you must be root)" >&2; echo more >&2; exit 1')
  t.same(await networkToolProblem({ nft: denied, ip: fine, iptables: fine }), {
    reason: 'FirewallUnavailable',
    found:
      'This agent cannot change the firewall of the machine: nft ended with Operation not permitted (you must be root)',
    remedy: 'Run the agent as root, on a kernel with nf_tables, then restart it',
  })
})
