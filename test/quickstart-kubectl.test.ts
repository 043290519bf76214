import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'

const run = promisify(execFile)
const support = fileURLToPath(new URL('../../scripts/support/', import.meta.url))

test('quickstart.sh installs the kubectl of a distribution that has 1.29 or newer', async (t) => {
  for (const candidate of ['1.29.0-1', '1.32.3+ds-2']) {
    t.same(await planned(t, { candidate }), { wanted: ['kubernetes-client'], text: '' }, candidate)
  }
})

test('an older kubectl, or none, is not installed: its makers’ page is printed', async (t) => {
  for (const candidate of ['1.20.5+really1.20.2-1.1', '1.28.9-1', '(none)']) {
    const { wanted, text } = await planned(t, { candidate })
    t.same(wanted, [], candidate)
    t.match(text, /none that is 1\.29 or newer\. Bramble runs without it.*https:\/\/kubernetes\.io\/docs\//s)
  }
})

test('a kubectl that is there stays', async (t) => {
  t.same(await planned(t, { candidate: '1.32.3+ds-2', installed: 'kubectl' }), { wanted: [], text: '' })
})

/** What `plan_kubectl` wants to be installed and prints, on a machine whose distribution has this version of kubernetes-client. */
async function planned(t: Test, { candidate, installed }: { readonly candidate: string; readonly installed?: string }) {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-kubectl-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const bin = join(folder, 'bin')
  await mkdir(bin)
  for (const tool of ['dirname', 'dpkg', 'grep', 'head', 'id', 'sed']) {
    await symlink((await run('sh', ['-c', `command -v ${tool}`])).stdout.trim(), join(bin, tool))
  }
  const policy = `kubernetes-client:\n  Installed: (none)\n  Candidate: ${candidate}\n  Version table:\n`
  const programs: { readonly [name: string]: string } = {
    'apt-cache': `cat <<'TXT'\n${policy}TXT`,
    'apt-get': 'exit 0',
    'dpkg-query': 'exit 1',
    find: 'echo lists-of-today',
    ...(installed !== undefined && { [installed]: 'exit 0' }),
  }
  for (const [name, text] of Object.entries(programs)) {
    await writeFile(join(bin, name), `#!/bin/sh\nPATH=/usr/bin:/bin\n${text}\n`, { mode: 0o755 })
  }
  const script = `set -euo pipefail; tools=$1/tools install_log=$1/log assume_yes=yes
    . "$2/print.sh"; . "$2/packages.sh"; plan_kubectl >&2; printf '%s\\n' "\${missing_packages[@]}"`
  const { stdout, stderr } = await run('/bin/bash', ['--norc', '-c', script, 'plan', folder, support], {
    env: { PATH: bin },
  })
  return { wanted: stdout.split('\n').filter((line) => line !== ''), text: stderr }
}
