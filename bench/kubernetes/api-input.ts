/** One input to a Kubernetes API, and what kube-apiserver 1.32 answers to it. */

export type SentInput = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `NS` stands for the namespace of the comparison. */
  readonly path: string
  /** A text or bytes are sent as they are, another value as JSON. */
  readonly body?: unknown
  /** Media type of the body. Default: JSON. */
  readonly type?: string
  readonly accept?: string
}

export type ExpectedAnswer = {
  readonly code: number
  /** By path (`details.causes.0.reason`): the value there; `absent` where there is none. '' is the whole text. */
  readonly fields?: { readonly [path: string]: unknown }
}

export type ApiInput = {
  /** A sentence about it, unique. */
  readonly name: string
  /** Must be answered with success, and is not compared. */
  readonly before?: readonly SentInput[]
  readonly sent: SentInput
  readonly expected: ExpectedAnswer
  /** Why Bramble answers otherwise, as documented; the comparison then expects a difference. */
  readonly differs?: string
}

/** In place of a value that is not there. */
export const absent = '(absent)'
