/** Text of a fleet for a terminal. */

/**
 * Names of users, messages of events and the like may be any text: characters that control a terminal, that are invisible or that
 * change the direction of writing become `?` (Unicode: categories C, Zl and Zp).
 */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')
}
