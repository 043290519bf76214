/** The interface that issues the token of a service account. */
export type TokenReference = { readonly name: string; readonly uid: string }

export type IssuedFor = {
  readonly namespace: string
  readonly account: TokenReference
  readonly audiences: readonly string[]
  readonly expirationSeconds: number
  /** It is valid for so long instead, and `expirationSeconds` is when a new one should be in use. */
  readonly extendedSeconds?: number
  /** The object that the token ends with; the node of a pod is noted beside it. */
  readonly bound: { readonly pod?: TokenReference; readonly node?: TokenReference; readonly secret?: TokenReference }
}

export interface TokenIssuer {
  issue(request: IssuedFor, nowMs: number): string
}
