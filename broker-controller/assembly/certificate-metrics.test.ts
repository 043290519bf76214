import { test } from 'tap'
import { openAuthority } from '../../certs/authority.ts'
import { issueServer } from '../../certs/issue.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { certificateFamilies } from './certificate-metrics.ts'

test('each certificate that there is shows when it expires', async (t) => {
  const nowMs = Date.UTC(2026, 0, 1)
  const authority = await openAuthority(testFolder(t), nowMs)
  const lasting = (days: number) => issueServer(authority, { names: ['hub'], nowMs, lifeMs: days * 24 * 3600_000 })
  const server = lasting(10)
  const tls = { certificate: `${server.certificate}\n${authority.certificate}`, key: server.key, ca: authority.trusted }
  const own = { authority: () => authority, tls: () => tls, administratorCertificate: () => undefined }
  const shown = (...given: Parameters<typeof certificateFamilies>) =>
    certificateFamilies(...given).flatMap(({ samples }) =>
      [...samples].map((sample) => [sample?.labels?.['certificate'], sample?.value]),
    )
  t.same(shown({ own, page: undefined }), [
    ['authority', authority.notAfterMs / 1000],
    ['server', nowMs / 1000 + 10 * 86_400],
  ])
  const all = {
    own: { ...own, administratorCertificate: () => lasting(20).certificate },
    page: { current: () => lasting(5) },
  }
  t.match(shown(all).slice(2), [
    ['administrator', nowMs / 1000 + 20 * 86_400],
    ['dashboard', nowMs / 1000 + 5 * 86_400],
  ])
})
