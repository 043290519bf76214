import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { packagesProblem, readPackages } from './card-packages.ts'

const agent = 'bramble-agent_0.3.0_arm64.deb'
const runtime = 'bramble-runtime_22.23.3-1_arm64.deb'

test('a card needs the agent with its runtime, or the keyring', async (t) => {
  t.equal(
    packagesProblem([agent, runtime, 'docker.io_26.1.5+dfsg1-9+b9_arm64.deb', 'tini_0.19.0-1%2bb1_arm64.deb']),
    undefined,
  )
  t.equal(packagesProblem(['bramble-archive-keyring_0.3.0_all.deb']), undefined)
  t.match(packagesProblem([]), /^bramble-agent and bramble-runtime for arm64 must be here, or bramble-archive-keyring/)
  t.match(packagesProblem([agent]), /^bramble-runtime for arm64 must be here/)
})

test('packages that a machine cannot install are named', async (t) => {
  t.match(
    packagesProblem([agent, 'bramble-runtime_22.23.3-1_amd64.deb']),
    /bramble-runtime_22.23.3-1_amd64.deb is for amd64/,
  )
  t.match(packagesProblem([agent, runtime, 'bramble-agent_0.4.0_arm64.deb']), /two versions of bramble-agent/)
  t.match(packagesProblem(['agent.deb']), /agent.deb is not named as a package/)
  t.match(packagesProblem(['a_1:2_arm64.deb']), /not named as a package/, 'apt writes %3a')
})

test('the packages of a folder are read in order, with their digests', async (t) => {
  const folder = testFolder(t)
  for (const name of [runtime, agent]) await writeFile(join(folder, name), `!<arch>\n${name}`)
  await writeFile(join(folder, 'notes.txt'), '')
  t.match(await readPackages(folder), [
    { fileName: agent, size: 8 + agent.length, sha256: /^[0-9a-f]{64}$/ },
    { fileName: runtime, path: join(folder, runtime) },
  ])
  await writeFile(join(folder, agent), 'a page with the status 404')
  await t.rejects(readPackages(folder), /bramble-agent_0.3.0_arm64.deb is not a package of Debian/)
  await t.rejects(readPackages(join(folder, 'none')), {
    message: /Cannot read the packages in .*none/,
    cause: { code: 'ENOENT' },
  })
})
