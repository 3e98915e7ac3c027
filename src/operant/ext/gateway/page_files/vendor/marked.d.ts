// What this page uses of marked: only its lexer; nothing here makes HTML.
export const marked: { lexer(text: string, options?: { gfm?: boolean; breaks?: boolean }): any[] };
