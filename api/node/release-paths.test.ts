import { test } from 'tap'
import { releaseFileOf, releasePath } from './release-paths.ts'

const digest = '0'.repeat(64)

test('the path of a file of a release names both', async (t) => {
  for (const file of ['release.json', 'release.json.ab12.minisig', 'bramble-agent_1.5.0~rc1+2_arm64.tar'])
    t.same(releaseFileOf(releasePath({ digest, file })), { digest, file })
})

test('a path that leads elsewhere is not that of a release', async (t) => {
  for (const path of [
    '/bramble/v1/releases/',
    `/bramble/v1/releases/${digest}`,
    `/bramble/v1/releases/${digest}/`,
    `/bramble/v1/releases/${digest}/..`,
    `/bramble/v1/releases/${digest}/.hidden`,
    `/bramble/v1/releases/${digest}/a/b`,
    `/bramble/v1/releases/${digest}/%2e%2e`,
    `/bramble/v1/releases/${digest}/${'a'.repeat(129)}`,
    `/bramble/v1/releases/../${digest}/release.json`,
    '/bramble/v1/releases/ABC/release.json',
    `/bramble/v1/sessions/${digest}/release.json`,
  ])
    t.equal(releaseFileOf(path), undefined, path)
})
