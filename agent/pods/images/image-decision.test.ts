import { test } from 'tap'
import { answerImage, configurationProblem, type ImageFacts, parseImageName, pullPolicyOf } from './image-decision.ts'

test('image names are read by the registry’s grammar', async (t) => {
  t.same(parseImageName('nginx'), { repository: 'nginx', tag: 'latest', digest: undefined })
  t.same(parseImageName('localhost:5000/a/b_c:v1.2'), {
    repository: 'localhost:5000/a/b_c',
    tag: 'v1.2',
    digest: undefined,
  })
  const digest = `sha256:${'a'.repeat(64)}`
  t.same(parseImageName(`ghcr.io/x/y@${digest}`), { repository: 'ghcr.io/x/y', tag: undefined, digest })
  t.match(parseImageName(`ghcr.io/x/y:1@${digest}`), { tag: '1', digest })
  for (const bad of ['', 'Nginx', 'a b', 'x:', 'x:-1', ':1', 'a//b', 'x@sha256:12', `${'a'.repeat(300)}`]) {
    t.equal(parseImageName(bad), undefined, bad)
  }
})

test('without a policy, latest is pulled each time', async (t) => {
  t.equal(pullPolicyOf(undefined, 'nginx'), 'Always')
  t.equal(pullPolicyOf(undefined, 'nginx:latest'), 'Always')
  t.equal(pullPolicyOf(undefined, 'nginx:1'), 'IfNotPresent')
  t.equal(pullPolicyOf(undefined, `nginx@sha256:${'a'.repeat(64)}`), 'IfNotPresent')
  t.equal(pullPolicyOf('Never', 'nginx'), 'Never')
})

const failure = { state: 'failed', message: 'no route', failedMsAgo: 1_000, retryInMs: 9_000 } as const

function answer(policy: 'Always' | 'IfNotPresent' | 'Never', facts: Partial<ImageFacts>, ranBefore = false) {
  return answerImage({ image: 'app:1', policy, ranBefore }, { present: false, pull: { state: 'none' }, ...facts })
}

test('a policy decides whether what is there is good enough', async (t) => {
  t.match(answer('IfNotPresent', { present: true }), { answer: 'ready', pulled: false })
  t.match(answer('IfNotPresent', {}), { answer: 'pull' })
  t.match(answer('Always', { present: true }), { answer: 'pull' })
  t.match(answer('Always', { present: true, pull: { state: 'pulled', agoMs: 0 } }), { answer: 'ready', pulled: true })
  t.match(answer('Always', { pull: { state: 'pulling', silentMs: 0 } }), {
    answer: 'wait',
    reason: 'ContainerCreating',
  })
  t.match(answer('Never', { present: true }), { answer: 'ready' })
  t.match(answer('Never', {}), {
    reason: 'ErrImageNeverPull',
    message: 'Container image "app:1" is not present with pull policy of Never',
  })
})

test('a failure is shown, then that we wait, then it is tried again', async (t) => {
  t.match(answer('Always', { pull: failure }), { reason: 'ErrImagePull', message: 'no route', retryInMs: 4_000 })
  t.match(answer('Always', { pull: { ...failure, failedMsAgo: 6_000, retryInMs: 4_000 } }), {
    reason: 'ImagePullBackOff',
    message: 'Back-off pulling image "app:1": ErrImagePull: no route',
    retryInMs: 4_000,
  })
  t.match(answer('Always', { pull: { ...failure, failedMsAgo: 10_000, retryInMs: 0 } }), { answer: 'pull' })
})

test('an image for other machines is pulled again, then waited for with the remedy', async (t) => {
  const unfit = 'image "app:1" is for linux/arm64, this machine is linux/amd64: …'
  const found = { present: true, unfit }
  const waits = { answer: 'wait', reason: 'ImagePlatformMismatch', message: unfit }
  t.match(answer('IfNotPresent', found), { answer: 'pull' }, 'the registry may have the right one')
  t.match(answer('IfNotPresent', { ...found, pull: { state: 'pulling', silentMs: 0 } }), {
    reason: 'ContainerCreating',
  })
  t.match(answer('Always', { ...found, pull: { state: 'pulled', agoMs: 1_000 } }), { ...waits, retryInMs: 299_000 })
  t.match(answer('Always', { ...found, pull: { state: 'pulled', agoMs: 300_000 } }), { answer: 'pull' })
  t.match(answer('IfNotPresent', { ...found, pull: failure }), { ...waits, retryInMs: 9_000 }, 'not that it failed')
  t.match(answer('IfNotPresent', { ...found, pull: { ...failure, retryInMs: 0 } }), { answer: 'pull' })
  t.match(answer('Never', found), waits)
})

test('an image with too large a configuration is pulled again, and refused whatever ran before', async (t) => {
  const refused = 'image app:1: its configuration is too large (257 KiB, at most 256 KiB)'
  t.equal(configurationProblem('app:1', 256 * 1024), undefined)
  t.equal(configurationProblem('app:1', 256 * 1024 + 1), refused)
  const found = { present: true, refused }
  const waits = { answer: 'wait', reason: 'ErrImagePull', message: refused }
  t.match(answer('IfNotPresent', found, true), { answer: 'pull' }, 'the registry may have another one by now')
  t.match(answer('Always', { ...found, pull: failure }, true), { ...waits, retryInMs: 9_000 })
  t.match(answer('Never', found, true), waits)
  t.match(answer('Never', { ...found, unfit: 'for another machine' }), waits)
})

test('a container that ran here comes back without its registry', async (t) => {
  t.match(answer('Always', { present: true, pull: failure }, true), { answer: 'ready', pulled: false })
  t.match(answer('Always', { present: true, pull: failure }, false), { answer: 'wait' }, 'a new one must be asked for')
  const silent = (silentMs: number) => ({ present: true, pull: { state: 'pulling', silentMs } as const })
  t.match(answer('Always', silent(4_000), true), { answer: 'wait', retryInMs: 6_000 }, 'one that may answer yet')
  t.match(answer('Always', silent(10_000), true), { answer: 'ready', pulled: false }, 'one that does not answer')
  t.match(answer('Always', silent(10_000), false), { answer: 'wait', retryInMs: undefined })
})

test('the parts of an image name are bounded as the registry bounds them', async (t) => {
  const repository = (length: number) => `x/${'a'.repeat(length - 2)}`
  t.equal(parseImageName(repository(255))?.repository, repository(255))
  t.equal(parseImageName(repository(256)), undefined)
  const longTag = `${repository(255)}:${'t'.repeat(128)}`
  t.equal(parseImageName(longTag)?.tag, 't'.repeat(128))
  t.equal(parseImageName(`${longTag}t`), undefined)
  const digest = (length: number) => `@sha256:${'0'.repeat(length)}`
  t.match(parseImageName(`${longTag}${digest(512 - longTag.length - 8)}`), { tag: 't'.repeat(128) }, '512 characters')
  t.equal(parseImageName(`${longTag}${digest(513 - longTag.length - 8)}`), undefined)
})

test('a policy that is not one of Kubernetes’ counts as none', async (t) => {
  t.equal(pullPolicyOf('Always', 'nginx:1'), 'Always')
  t.equal(pullPolicyOf('IfNotPresent', 'nginx'), 'IfNotPresent')
  t.equal(pullPolicyOf('Sometimes', 'nginx:1'), 'IfNotPresent')
  t.equal(pullPolicyOf(undefined, 'Not A Name'), 'IfNotPresent')
})

test('an invalid image name is refused before anything is pulled', async (t) => {
  const asked = { image: 'Not A Name', policy: 'Always', ranBefore: true } as const
  t.match(answerImage(asked, { present: true, pull: { state: 'none' } }), {
    answer: 'wait',
    reason: 'InvalidImageName',
    message: /^Failed to apply default image tag "Not A Name": couldn't parse image name/,
  })
})

test('what was pulled for this start differs from what was there; what vanished since is pulled again', async (t) => {
  t.match(answer('IfNotPresent', { present: true, pull: { state: 'pulled', agoMs: 5 } }), { pulled: true })
  t.match(answer('IfNotPresent', { present: true, pull: failure }), { answer: 'ready', pulled: false })
  t.match(answer('Never', { present: true, pull: { state: 'pulled', agoMs: 5 } }), { pulled: false })
  t.match(answer('Always', { pull: { state: 'pulled', agoMs: 5 } }), { answer: 'pull' })
  t.match(answer('Always', { pull: failure }, true), { answer: 'wait' }, 'nothing is at hand')
  t.match(answer('Always', { pull: { state: 'pulling', silentMs: 20_000 } }, true), { answer: 'wait' })
})

test('the failure is shown for five seconds, or until the next attempt', async (t) => {
  const failed = (failedMsAgo: number, retryInMs: number) =>
    answer('Always', { pull: { ...failure, failedMsAgo, retryInMs } })
  t.match(failed(0, 2_000), { reason: 'ErrImagePull', retryInMs: 2_000 })
  t.match(failed(4_999, 2_000), { reason: 'ErrImagePull', retryInMs: 1 })
  t.match(failed(5_000, 2_000), { reason: 'ImagePullBackOff', retryInMs: 2_000 })
  t.match(failed(1_000, 0), { answer: 'pull' })
})

test('an image without a present copy is never unfit', async (t) => {
  t.match(answer('Never', { unfit: 'for another machine' }), { reason: 'ErrImageNeverPull' })
})
