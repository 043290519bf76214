/**
 * The two datagrams of a probe. A challenge: 4 bytes of name, a nonce, the address with its length before it, and zeros. A proof: 4 bytes
 * of name, the nonce, a signature and a certificate (DER), each with its length before it.
 */

export type Challenge = {
  readonly nonce: Buffer
  /** That the receiver is to prove. */
  readonly address: string
}

export type Proof = {
  readonly nonce: Buffer
  readonly signature: Buffer
  /** DER. */
  readonly certificate: Buffer
}

/** Random: a machine that has not received the challenge has no proof for it. */
export const nonceBytes = 24
/** A challenge is as long as the longest proof, so that a forged source gets no more bytes than were sent. They fit one packet. */
export const datagramBytes = 1_400

const challengeName = Buffer.from('BRc1')
const proofName = Buffer.from('BRp1')
const longestAddress = 45

/** What a node signs: its key signs nothing else that begins like this, neither in TLS nor in certificates. */
export function signedText({ nonce, address }: Challenge): Buffer {
  return Buffer.from(`bramble: the address of a node, 1\n${nonce.toString('hex')}\n${address}\n`)
}

export function writeChallenge({ nonce, address }: Challenge): Buffer {
  const text = Buffer.from(address, 'latin1')
  const message = Buffer.alloc(datagramBytes)
  Buffer.concat([challengeName, nonce, Buffer.of(text.length), text]).copy(message)
  return message
}

/** undefined: it is not a challenge. */
export function readChallenge(message: Buffer): Challenge | undefined {
  if (message.length !== datagramBytes || !message.subarray(0, 4).equals(challengeName)) return undefined
  const length = message.readUInt8(4 + nonceBytes)
  if (length > longestAddress) return undefined
  const start = 4 + nonceBytes + 1
  return { nonce: nonceOf(message), address: message.toString('latin1', start, start + length) }
}

/** undefined: it would be longer than a challenge, as with certificates of some authorities that are not ours. */
export function writeProof({ nonce, signature, certificate }: Proof): Buffer | undefined {
  const message = Buffer.concat([proofName, nonce, withLength(signature), withLength(certificate)])
  return message.length > datagramBytes ? undefined : message
}

/** undefined: it is not a proof. */
export function readProof(message: Buffer): Proof | undefined {
  if (message.length > datagramBytes || !message.subarray(0, 4).equals(proofName)) return undefined
  const signature = blockAt(message, 4 + nonceBytes)
  const certificate = signature && blockAt(message, 4 + nonceBytes + 2 + signature.length)
  return certificate && { nonce: nonceOf(message), signature, certificate }
}

function nonceOf(message: Buffer): Buffer {
  return message.subarray(4, 4 + nonceBytes)
}

function withLength(bytes: Buffer): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(bytes.length)
  return Buffer.concat([length, bytes])
}

function blockAt(message: Buffer, offset: number): Buffer | undefined {
  if (message.length < offset + 2) return undefined
  const end = offset + 2 + message.readUInt16BE(offset)
  return message.length < end ? undefined : message.subarray(offset + 2, end)
}
