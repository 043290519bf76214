import { type Test, test } from 'tap'
import type { CertificateSigningRequest } from '../../api/certificate-signing-request.ts'
import { openAuthority } from '../../certs/authority.ts'
import { signNodeCSR } from '../../certs/testing/sign-node-csr.ts'
import { type ApiAnswer, ApiUnreachable } from '../../daemon/api-client.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { renewedCertificate } from './renewal.ts'

test('a request that an operator must look at outlives a controller that is away meanwhile', async (t) => {
  const { asked, answers, renew, sign } = await world(t)
  answers.push(new ApiUnreachable('away', 'ECONNREFUSED', { cause: undefined }), answer(503), sign)
  t.match((await renew()).certificate, /BEGIN CERTIFICATE/)
  t.equal(asked.length, 1)
  t.same(answers, [])
})

test('a request that was deleted is an error', async (t) => {
  const { answers, renew } = await world(t)
  answers.push(answer(404))
  await t.rejects(renew(), { message: /Refused: 404/ })
})

function answer(status: number, body?: unknown): ApiAnswer {
  return { status, body, dateHeader: undefined }
}

async function world(t: Test) {
  const clock = fakeClock()
  const authority = await openAuthority(testFolder(t), clock.wallMs())
  const asked: CertificateSigningRequest[] = []
  const answers: (ApiAnswer | Error | (() => ApiAnswer))[] = []
  const api = {
    async post(_: string, body: unknown) {
      asked.push(body as CertificateSigningRequest)
      return answer(201, body)
    },
    async get() {
      const next = answers.shift()
      if (next instanceof Error) throw next
      return typeof next === 'function' ? next() : (next ?? answer(200, asked[0]))
    },
  }
  return {
    asked,
    answers,
    sign() {
      const request = Buffer.from(asked[0]?.spec.request ?? '', 'base64').toString()
      const certificate = Buffer.from(signNodeCSR(authority, request, { nowMs: clock.wallMs() })).toString('base64')
      return answer(200, { ...asked[0], status: { certificate } })
    },
    async renew() {
      const request = { nodeName: 'pi-1', hardware: {}, trusted: authority.certificate }
      const renewing = renewedCertificate(request, { api, clock }, new AbortController().signal)
      renewing.catch(() => undefined)
      await clock.advance(10 * 60_000)
      return renewing
    },
  }
}
