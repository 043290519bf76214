/** What a person types on a machine to make it a node of the fleet. */
import { formatToken, type TokenParts } from './bootstrap-token.ts'

export type JoinFacts = {
  /** `https://HOST:PORT` */
  readonly server: string
  /** `sha256:HEX` of the fleet's authority. */
  readonly caHash: string
  readonly token: TokenParts
}

/** The command of the installed package, without sudo. */
export function agentJoin({ server, caHash, token }: JoinFacts): string {
  return `bramble-agent join ${server} --token ${formatToken(token)} --ca-hash ${caHash}`
}

/** The command in a clone of the repository: it installs what is missing, Node.js too, and builds. */
export function cloneJoin({ server, caHash, token }: JoinFacts): string {
  return `scripts/quickstart.sh --join ${server} --token ${formatToken(token)} --ca-hash ${caHash}`
}
