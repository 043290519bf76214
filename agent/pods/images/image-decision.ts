/** Decides whether a container may start with its image, and why not. */

export type PullPolicy = 'Always' | 'IfNotPresent' | 'Never'

export type ImageName = {
  /** Registry and repository, as written. */
  readonly repository: string
  /** `latest` when the name has neither tag nor digest. */
  readonly tag: string | undefined
  readonly digest: string | undefined
}

const host =
  '(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\\[[0-9a-fA-F:]+\\])(?::\\d+)?'
const part = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
const reference = new RegExp(
  `^((?:${host}/)?${part}(?:/${part})*)(?::([\\w][\\w.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$`,
)

/** The grammar of distribution references; undefined when the text is not one. */
export function parseImageName(text: string): ImageName | undefined {
  const match = text.length > 512 ? null : reference.exec(text)
  if (match?.[1] === undefined || match[1].length > 255) return undefined
  const [, repository, tag, digest] = match
  return { repository, tag: tag ?? (digest === undefined ? 'latest' : undefined), digest }
}

/** The given policy, or Kubernetes' default: Always for `:latest` or no tag, else IfNotPresent. */
export function pullPolicyOf(policy: string | undefined, image: string): PullPolicy {
  if (policy === 'Always' || policy === 'IfNotPresent' || policy === 'Never') return policy
  return parseImageName(image)?.tag === 'latest' ? 'Always' : 'IfNotPresent'
}

/**
 * Limit of an image's configuration as the engine reports it: labels, variables, commands and layers. The largest
 * images in common use have a few tens of kilobytes. The engine repeats the labels for each container in its lists,
 * which are read all the time.
 */
const mostConfigurationBytes = 256 * 1024

/** Why no container may be made of an image of which the engine reports so much; undefined: it may. */
export function configurationProblem(image: string, bytes: number): string | undefined {
  if (bytes <= mostConfigurationBytes) return undefined
  const kib = (size: number) => `${Math.ceil(size / 1024)} KiB`
  return `image ${image}: its configuration is too large (${kib(bytes)}, at most ${kib(mostConfigurationBytes)})`
}

/** The state of one image when a container needs it. */
export type ImageFacts = {
  readonly present: boolean
  /** Why the image that is present does not run on this machine. */
  readonly unfit?: string
  /** Why no container can be made of the image that is present: the engine has not all of it. */
  readonly damaged?: string
  /** Why no container may be made of the image that is present. */
  readonly refused?: string
  /** The last pull since the container last ran: none, in progress, complete, or failed with this message. */
  readonly pull: PullState
}

export type PullState =
  | { readonly state: 'none' }
  /** `silentMs`: how long the registries have sent nothing. */
  | { readonly state: 'pulling'; readonly silentMs: number }
  | { readonly state: 'pulled'; readonly agoMs: number }
  | {
      readonly state: 'failed'
      readonly message: string
      readonly failedMsAgo: number
      readonly retryInMs: number
    }

export type ImageAnswer =
  | { readonly answer: 'ready'; readonly pulled: boolean }
  | { readonly answer: 'pull' }
  | { readonly answer: 'wait'; readonly reason: string; readonly message: string; readonly retryInMs?: number }

/** A registry behind a slow link sends its first bytes within this time. */
const silenceMs = 10_000

/**
 * `ranBefore`: a container of this pod and name ran on this node before. It then starts from the image that is present if the
 * registry cannot be reached or sends nothing, so that a node starts its pods after a power cut without a registry.
 */
export function answerImage(
  { image, policy, ranBefore }: { readonly image: string; readonly policy: PullPolicy; readonly ranBefore: boolean },
  facts: ImageFacts,
): ImageAnswer {
  if (parseImageName(image) === undefined) {
    return {
      answer: 'wait',
      reason: 'InvalidImageName',
      message: `Failed to apply default image tag "${image}": couldn't parse image name "${image}": invalid reference format`,
    }
  }
  const unusable = facts.present ? unusableBecause(facts) : undefined
  if (unusable !== undefined) return answerUnfit(unusable, policy, facts.pull)
  if (policy === 'Never') return facts.present ? { answer: 'ready', pulled: false } : neverThere(image)
  if (policy === 'IfNotPresent' && facts.present) return { answer: 'ready', pulled: facts.pull.state === 'pulled' }
  return answerPull(image, ranBefore, facts)
}

/** Why no container can be made of the image that is present. */
function unusableBecause({ refused, damaged, unfit }: ImageFacts) {
  if (refused !== undefined) return { reason: 'ErrImagePull', message: refused }
  if (damaged !== undefined) return { reason: 'ImageDamaged', message: damaged }
  return unfit === undefined ? undefined : { reason: 'ImagePlatformMismatch', message: unfit }
}

/** For an image that must be pulled, as far as its last pull has come. */
function answerPull(image: string, ranBefore: boolean, facts: ImageFacts): ImageAnswer {
  switch (facts.pull.state) {
    case 'none':
      return { answer: 'pull' }
    case 'pulling': {
      if (!facts.present || !ranBefore) return creating
      const leftMs = silenceMs - facts.pull.silentMs
      return leftMs > 0 ? { ...creating, retryInMs: leftMs } : { answer: 'ready', pulled: false }
    }
    case 'pulled':
      return facts.present ? { answer: 'ready', pulled: true } : { answer: 'pull' }
    case 'failed':
      return facts.present && ranBefore ? { answer: 'ready', pulled: false } : failed(image, facts.pull)
  }
}

const creating = { answer: 'wait', reason: 'ContainerCreating', message: '' } as const

/** Retry interval: another image may have the name by then, in the registry or on this machine. */
const unfitRetryMs = 300_000

function answerUnfit(
  problem: { readonly reason: string; readonly message: string },
  policy: PullPolicy,
  pull: PullState,
): ImageAnswer {
  const wait = { answer: 'wait', ...problem } as const
  if (policy === 'Never') return { ...wait, retryInMs: unfitRetryMs }
  switch (pull.state) {
    case 'none':
      return { answer: 'pull' }
    case 'pulling':
      return creating
    case 'pulled':
      return pull.agoMs < unfitRetryMs ? { ...wait, retryInMs: unfitRetryMs - pull.agoMs } : { answer: 'pull' }
    case 'failed':
      return pull.retryInMs > 0 ? { ...wait, retryInMs: pull.retryInMs } : { answer: 'pull' }
  }
}

function neverThere(image: string): ImageAnswer {
  return {
    answer: 'wait',
    reason: 'ErrImageNeverPull',
    message: `Container image "${image}" is not present with pull policy of Never`,
  }
}

/** The waiting reason is first the failure, then the back-off (pkg/kubelet/images/image_manager.go, EnsureImageExists). */
const failureShownMs = 5_000

function failed(image: string, pull: PullState & { readonly state: 'failed' }): ImageAnswer {
  const { message, failedMsAgo, retryInMs } = pull
  if (retryInMs <= 0) return { answer: 'pull' }
  if (failedMsAgo < failureShownMs) {
    const shownMs = Math.min(retryInMs, failureShownMs - failedMsAgo)
    return { answer: 'wait', reason: 'ErrImagePull', message, retryInMs: shownMs }
  }
  return {
    answer: 'wait',
    reason: 'ImagePullBackOff',
    message: `Back-off pulling image "${image}": ErrImagePull: ${message}`,
    retryInMs,
  }
}
